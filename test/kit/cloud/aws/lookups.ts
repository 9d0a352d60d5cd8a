import type { CloudModel, Properties } from '../model.ts';
import { zonesOf } from './zones.ts';

const statement = (one: Properties) => ({
  ...(one.sid && { Sid: one.sid }),
  Effect: one.effect ?? 'Allow',
  ...(one.actions && { Action: one.actions }),
  ...(one.resources && { Resource: one.resources }),
  ...(one.principals && {
    Principal: Object.fromEntries(one.principals.map(({ type, identifiers }: Properties) => [type, identifiers])),
  }),
});

/** What AWS's tagging API gives for tag filters: every value of a filter may match, every filter must. */
const matches = (tags: Record<string, string>, filters: Properties[] = []): boolean =>
  filters.every(({ key, values }) => tags[key] !== undefined && (!values?.length || values.includes(tags[key])));

/** Functions of @pulumi/aws; `tagged` needs the model's own way to tell tags. */
export const lookups = (tags: CloudModel['tags']): CloudModel['lookups'] => ({
  'aws:index:getAvailabilityZones': (_, { region }) => ({
    id: region,
    names: zonesOf(region),
    zoneIds: zonesOf(region),
    groupNames: [region],
    region,
  }),
  'aws:index:getCallerIdentity': (_, { caller }) => ({
    id: caller.account,
    accountId: caller.account,
    arn: caller.principal,
    userId: 'AIDAFAKEFAKEFAKEFAKE1',
  }),
  'aws:index:getRegion': (_, { region }) => ({
    id: region,
    region,
    name: region,
    description: region,
    endpoint: `ec2.${region}.amazonaws.com`,
  }),
  'aws:index:getPartition': () => ({
    id: 'aws',
    partition: 'aws',
    dnsSuffix: 'amazonaws.com',
    reverseDnsPrefix: 'com.amazonaws',
  }),
  'aws:iam:getSessionContext': ({ arn }) => ({
    id: arn,
    arn,
    issuerArn: arn,
    issuerId: '',
    issuerName: '',
    sessionName: '',
  }),
  'aws:iam:getPolicyDocument': (args) => {
    const json = JSON.stringify({ Version: '2012-10-17', Statement: (args.statements ?? []).map(statement) });
    return { id: json.length.toString(), json, minifiedJson: json };
  },
  'aws:ssm:getParameter': ({ name }, { region }) => ({
    id: name,
    name,
    value: name.includes('release_version') ? '1.36.1-20261101' : `ami-0${region.length}23456789abcdef0`,
    type: 'String',
    version: 1,
  }),
  'aws:eks:getAddonVersion': ({ addonName, kubernetesVersion }) => ({
    id: addonName,
    addonName,
    kubernetesVersion,
    version: `v${kubernetesVersion}.0-eksbuild.1`,
  }),
  'aws:eks:getCluster': ({ name }, testbed) => {
    const cluster = testbed.find('aws:eks:Cluster', name);
    if (!cluster) return undefined;
    const outputs = testbed.outputs(cluster);
    return { ...outputs, id: name, certificateAuthorities: [outputs.certificateAuthority] };
  },
  'aws:resourcegroupstaggingapi:getResources': ({ tagFilters }, testbed) => ({
    id: testbed.region,
    resourceTagMappingLists: testbed
      .all()
      .filter((one) => one.region === testbed.region && matches(tags(one), tagFilters))
      .flatMap((one) => {
        const arn = testbed.outputs(one).arn;
        return arn === undefined ? [] : [{ resourceArn: arn, tags: tags(one), complianceDetails: [] }];
      }),
  }),
});
