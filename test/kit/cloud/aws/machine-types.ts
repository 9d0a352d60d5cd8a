import { digits } from '../digits.ts';
import type { Machines, Properties, ResourceType, Testbed } from '../model.ts';
import { arn, iamId, joined, list, numbered, simple, uuid } from './naming.ts';

/** What the group launches, of the template or of the overrides. */
function machinesOfGroup(inputs: Properties, testbed: Testbed): Machines {
  const mixed = inputs.mixedInstancesPolicy;
  const template = inputs.launchTemplate ?? mixed?.launchTemplate?.launchTemplateSpecification;
  const found = testbed.find('aws:ec2:LaunchTemplate', template?.id ?? template?.launchTemplateId ?? template?.name);
  const overrides = list(mixed?.launchTemplate?.overrides).flatMap(({ instanceType }) => instanceType ?? []);
  return {
    count: Number(inputs.desiredCapacity ?? inputs.minSize ?? 0),
    spot: mixed?.instancesDistribution?.onDemandPercentageAboveBaseCapacity === 0,
    types: overrides.length > 0 ? overrides : list(found?.inputs.instanceType),
    zones: list(inputs.vpcZoneIdentifiers).flatMap((id) => {
      const subnet = testbed.find('aws:ec2:Subnet', id);
      return subnet ? [String(testbed.outputs(subnet).availabilityZone)] : [];
    }),
  };
}

const roleOf = (inputs: Properties) => ({ type: 'aws:iam:Role', handle: inputs.role });

/** EC2's and IAM's, KMS' and S3's. */
export const machineTypes: ResourceType[] = [
  simple('aws:ec2:LaunchTemplate', {
    nameInput: 'name',
    immutable: ['name', 'namePrefix'],
    id: numbered('lt'),
    uniqueBy: (inputs) => inputs.name,
    outputs: (template) => ({
      arn: arn(template, 'ec2', `launch-template/${template.id}`),
      latestVersion: template.generation,
      defaultVersion: template.inputs.updateDefaultVersion ? template.generation : 1,
    }),
  }),
  simple('aws:autoscaling:Group', {
    nameInput: 'name',
    immutable: ['name', 'namePrefix'],
    id: ({ name }) => name,
    uniqueBy: (inputs) => inputs.name,
    outputs: (group) => ({
      arn: arn(group, 'autoscaling', `autoScalingGroup:${uuid(group.uid)}:autoScalingGroupName/${group.name}`),
      desiredCapacity: group.inputs.desiredCapacity ?? group.inputs.minSize,
    }),
    references: (inputs) => [
      ...list(inputs.vpcZoneIdentifiers).map((handle) => ({ type: 'aws:ec2:Subnet', handle })),
      ...(inputs.launchTemplate?.id
        ? [{ type: 'aws:ec2:LaunchTemplate', handle: inputs.launchTemplate.id, onDelete: 'ignore' as const }]
        : []),
      ...list(inputs.targetGroupArns).map((handle) => ({
        type: 'aws:lb:TargetGroup',
        handle,
        onDelete: 'ignore' as const,
      })),
    ],
    machines: machinesOfGroup,
  }),
  simple('aws:iam:Role', {
    nameInput: 'name',
    global: true,
    immutable: ['name', 'namePrefix', 'path'],
    id: ({ name }) => name,
    uniqueBy: (inputs) => inputs.name,
    outputs: (role) => ({
      arn: arn(role, 'iam', `role${role.inputs.path ?? '/'}${role.name}`),
      uniqueId: iamId('AROA', role.uid),
      createDate: new Date(role.createdAt).toISOString(),
    }),
  }),
  simple('aws:iam:RolePolicyAttachment', {
    global: true,
    idempotent: true,
    immutable: ['role', 'policyArn'],
    id: ({ inputs }) => `${inputs.role}/${inputs.policyArn}`,
    uniqueBy: (inputs) => joined(inputs, 'role', 'policyArn'),
    references: (inputs) => [roleOf(inputs)],
  }),
  simple('aws:iam:RolePolicy', {
    nameInput: 'name',
    global: true,
    idempotent: true,
    immutable: ['role', 'name'],
    id: ({ inputs, name }) => `${inputs.role}:${name}`,
    uniqueBy: (inputs) => joined(inputs, 'role', 'name'),
    references: (inputs) => [roleOf(inputs)],
  }),
  simple('aws:iam:InstanceProfile', {
    nameInput: 'name',
    global: true,
    immutable: ['name', 'namePrefix', 'path'],
    id: ({ name }) => name,
    uniqueBy: (inputs) => inputs.name,
    outputs: (profile) => ({
      arn: arn(profile, 'iam', `instance-profile/${profile.name}`),
      uniqueId: iamId('AIPA', profile.uid),
    }),
    references: (inputs) => (inputs.role ? [roleOf(inputs)] : []),
  }),
  simple('aws:iam:Policy', {
    nameInput: 'name',
    global: true,
    immutable: ['name', 'namePrefix', 'path', 'description'],
    id: (policy) => arn(policy, 'iam', `policy/${policy.name}`),
    uniqueBy: (inputs) => inputs.name,
    outputs: (policy) => ({ arn: policy.id, policyId: iamId('ANPA', policy.uid) }),
  }),
  simple('aws:iam:OpenIdConnectProvider', {
    nameInput: 'url',
    global: true,
    immutable: ['url'],
    id: (provider) => arn(provider, 'iam', `oidc-provider/${provider.name.replace('https://', '')}`),
    uniqueBy: (inputs) => inputs.url,
    outputs: ({ id }) => ({ arn: id }),
  }),
  simple('aws:kms:Key', {
    immutable: ['customerMasterKeySpec', 'keyUsage', 'multiRegion'],
    id: ({ uid }) => uuid(uid),
    outputs: (key) => ({ arn: arn(key, 'kms', `key/${key.id}`), keyId: key.id }),
  }),
  simple('aws:kms:Alias', {
    nameInput: 'name',
    immutable: ['name'],
    id: ({ name }) => name,
    uniqueBy: (inputs) => inputs.name,
    outputs: (alias) => ({
      arn: arn(alias, 'kms', alias.name),
      targetKeyArn: arn(alias, 'kms', `key/${alias.inputs.targetKeyId}`),
    }),
    references: (inputs) => [{ type: 'aws:kms:Key', handle: inputs.targetKeyId, onDelete: 'cascade' }],
  }),
  simple('aws:s3:Bucket', {
    nameInput: 'bucket',
    immutable: ['bucket'],
    id: ({ name }) => name,
    uniqueBy: (inputs) => inputs.bucket,
    outputs: (bucket) => ({
      arn: `arn:aws:s3:::${bucket.name}`,
      bucketDomainName: `${bucket.name}.s3.amazonaws.com`,
      bucketRegionalDomainName: `${bucket.name}.s3.${bucket.region}.amazonaws.com`,
      hostedZoneId: `Z${digits(13, bucket.region).toUpperCase()}`,
    }),
  }),
];
