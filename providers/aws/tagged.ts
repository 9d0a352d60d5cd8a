import type { Owner, TaggedResource } from '../cloud.ts';
import { eachPage } from '../pages.ts';
import { OWNER_TAGS, ownerOf } from '../tags.ts';
import { type AwsConnection, awsCodeOf, postJson, query } from './api.ts';
import { nameTag } from './names.ts';
import { type Element, itemsAt, textAt } from './xml.ts';

/** Tag on every resource of Coppice's. */
const MARK = OWNER_TAGS.technicalID;

interface Mapping {
  ResourceARN: string;
  Tags: { Key: string; Value: string }[];
}

/**
 * Resources in the region with Coppice's tags, of any owner, by the Resource Groups Tagging API. It excludes IAM roles,
 * which are global; they cost nothing, and a second creation fails on the name.
 */
export async function taggedResources(aws: AwsConnection): Promise<TaggedResource[]> {
  const found = (await resourcesWith(aws, { TagFilters: [{ Key: MARK }] })).flatMap(({ ResourceARN: id, Tags }) => {
    const tags = Object.fromEntries(Tags.map(({ Key, Value }) => [Key, Value]));
    const owner = ownerOf(tags);
    return owner ? [{ id, type: arnTypeOf(id), region: aws.region, owner, ...partOf(owner, tags.Name) }] : [];
  });
  return await withoutGone(aws, found);
}

/** All pages of the Resource Groups Tagging API for these filters: an empty page may not be the last. */
export async function resourcesWith(
  aws: AwsConnection,
  filters: { TagFilters: { Key: string; Values?: string[] }[]; ResourceTypeFilters?: string[] },
): Promise<Mapping[]> {
  const found: Mapping[] = [];
  await eachPage(`resources with our tags in ${aws.region}`, async (token) => {
    const page = await postJson<{ PaginationToken?: string; ResourceTagMappingList?: Mapping[] }>(
      aws,
      'tagging',
      'ResourceGroupsTaggingAPI_20170126.GetResources',
      { ...filters, ResourcesPerPage: 100, ...(token && { PaginationToken: token }) },
    );
    found.push(...(page.ResourceTagMappingList ?? []));
    return page.PaginationToken;
  });
  return found;
}

/** The part in tag Name, without the owner; see nameTag. */
function partOf({ technicalID = '' }: Partial<Owner>, name = ''): Pick<TaggedResource, 'part'> {
  const part = name.slice(technicalID.length + 1);
  return part && name === nameTag({ technicalID }, part) ? { part } : {};
}

/** `arn:aws:ec2:eu-central-1:1:natgateway/nat-1` has type `ec2:natgateway`. */
export function arnTypeOf(arn: string): string {
  const [, , service, , , ...rest] = arn.split(':');
  return `${service}:${rest.join(':').split(/[/:]/)[0]}`;
}

const lastOf = (arn: string): string => arn.slice(arn.lastIndexOf('/') + 1);

/** Existing resources by the last part of their ARN, with known facts. */
type Living = Map<string, { machineType?: string; createdAt?: string }>;

/**
 * AWS lists deleted resources for a while: an hour for a machine or NAT gateway, the whole waiting period for a key.
 * They must not be swept again and again.
 */
const LINGERING: Readonly<Record<string, (aws: AwsConnection, arns: string[]) => Promise<Living>>> = {
  'ec2:instance': (aws) =>
    described(aws, 'DescribeInstances', 'instance-state-name', ['pending', 'running', 'stopping', 'stopped']),
  'ec2:natgateway': (aws) => described(aws, 'DescribeNatGateways', 'state', ['pending', 'available', 'failed']),
  'kms:key': livingKeys,
};

async function withoutGone(aws: AwsConnection, found: TaggedResource[]): Promise<TaggedResource[]> {
  const living = new Map<string, Living>();
  for (const [type, look] of Object.entries(LINGERING)) {
    const arns = found.filter((resource) => resource.type === type).map(({ id }) => id);
    if (arns.length > 0) living.set(type, await look(aws, arns));
  }
  return found.flatMap((resource) => {
    const known = living.get(resource.type);
    if (!known) return [resource];
    const details = known.get(lastOf(resource.id));
    return details ? [{ ...resource, ...details }] : [];
  });
}

async function described(
  aws: AwsConnection,
  action: 'DescribeInstances' | 'DescribeNatGateways',
  filter: string,
  values: string[],
): Promise<Living> {
  const living: Living = new Map();
  await eachPage(action, async (token) => {
    const answer = await query(aws, 'ec2', action, {
      'Filter.1.Name': 'tag-key',
      'Filter.1.Value.1': MARK,
      'Filter.2.Name': filter,
      ...Object.fromEntries(values.map((value, index) => [`Filter.2.Value.${index + 1}`, value])),
      ...(token && { NextToken: token }),
    });
    for (const item of itemsOf(answer)) {
      const machineType = textAt(item, 'instanceType');
      const createdAt = textAt(item, 'launchTime') || textAt(item, 'createTime');
      living.set(textAt(item, 'instanceId') || textAt(item, 'natGatewayId'), {
        ...(machineType && { machineType }),
        ...(createdAt && { createdAt }),
      });
    }
    return textAt(answer, 'nextToken');
  });
  return living;
}

const itemsOf = (answer: Element): Element[] => [
  ...itemsAt(answer, 'reservationSet').flatMap((reservation) => itemsAt(reservation, 'instancesSet')),
  ...itemsAt(answer, 'natGatewaySet'),
];

interface KeyDescription {
  KeyMetadata: { KeyState: string; CreationDate?: number };
}

async function livingKeys(aws: AwsConnection, arns: string[]): Promise<Living> {
  const living: Living = new Map();
  for (const arn of arns) {
    try {
      const { KeyMetadata } = await postJson<KeyDescription>(aws, 'kms', 'TrentService.DescribeKey', { KeyId: arn });
      if (KeyMetadata.KeyState === 'PendingDeletion') continue;
      const { CreationDate: seconds } = KeyMetadata;
      living.set(lastOf(arn), seconds ? { createdAt: new Date(seconds * 1000).toISOString() } : {});
    } catch (error) {
      if (awsCodeOf(error) !== 'NotFoundException') throw error;
    }
  }
  return living;
}
