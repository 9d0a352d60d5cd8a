import { configurationProblem } from '../../operator/api/errors.ts';
import { ownedByOther, versionProblem } from '../adopted-cluster.ts';
import type { Adoption, NetworkOutputs, Owner } from '../cloud.ts';
import type { Problem } from '../contract.ts';
import type { AdoptingCluster, FoundCluster } from '../pulumi/adopted-layer.ts';
import { ADOPTION_TAGS, OWNER_TAGS, withoutAdoption } from '../tags.ts';
import { type AwsConnection, awsCodeOf, getJson, query } from './api.ts';
import { policySource } from './permissions.ts';
import { type Element, itemsAt, textAt } from './xml.ts';

/** Facts on the cluster for the program `adopted`. */
export interface AdoptedFacts {
  name: string;
  roleArn: string;
  /** Minor version of the cluster. */
  version: string;
  network: NetworkOutputs;
  /** Its tags without Coppice's. */
  tags: Record<string, string>;
  /**
   * Whether Coppice creates an access entry for the caller: not where others grant access, or EKS has no access
   * entries.
   */
  letIn: boolean;
}

/** The fields of DescribeCluster that are read (shape Cluster in botocore 1.43.11's model of EKS). */
interface Described {
  name: string;
  arn: string;
  status: string;
  version: string;
  roleArn: string;
  tags?: Record<string, string>;
  accessConfig?: { authenticationMode?: string };
  resourcesVpcConfig?: { subnetIds?: string[]; vpcId?: string };
}

const ARN = /^arn:[a-z-]+:eks:([a-z0-9-]+):(\d{12}):cluster\/([0-9A-Za-z][\w-]{0,99})$/;
/** ClusterName in botocore 1.43.11's model of EKS. */
const NAME = /^[0-9A-Za-z][\w-]{0,99}$/;

/** Name of the EKS cluster in an id, with region and account where present; undefined for an invalid id. */
export function clusterOfID(id: string): { name: string; region?: string; account?: string } | undefined {
  const [, region, account, name] = ARN.exec(id) ?? [];
  if (region && account && name) return { name, region, account };
  return NAME.test(id) ? { name: id } : undefined;
}

/** Problems of an id, independent of the cloud's state. Pure. */
export function adoptProblems({ id }: Adoption, region: string): Problem[] {
  const meant = clusterOfID(id);
  const say = (message: string): Problem[] => [{ field: 'adopt.id', message, code: 'ERR_CONFIGURATION_PROBLEM' }];
  if (!meant) return say(`${id} is neither the name nor the ARN of an EKS cluster`);
  if (meant.region !== undefined && meant.region !== region)
    return say(`${id} is in region ${meant.region}, the cluster is to be in ${region}: set spec.region`);
  return [];
}

/** Reads the EKS cluster to adopt; see AdoptingCloud.look. `account`: of the credentials. */
export async function lookAtAdopted(
  aws: AwsConnection,
  owner: Owner,
  { adopt, kubernetesVersion }: AdoptingCluster,
  account: string,
): Promise<FoundCluster> {
  const { id } = adopt;
  const meant = clusterOfID(id);
  const refuse = (why: string, advice: string) =>
    configurationProblem(`EKS cluster ${id} cannot be taken over: ${why}`, advice);
  if (!meant) throw refuse('this is no name or ARN of one', 'Correct spec.adopt.id.');
  if (meant.account !== undefined && meant.account !== account)
    throw refuse(`the credentials are of account ${account}`, `Name credentials of account ${meant.account}.`);
  const cluster = await describe(aws, meant.name);
  if (!cluster)
    throw refuse(`account ${account} has none of that name in ${aws.region}`, 'Correct spec.adopt.id, or spec.region.');
  const { tags = {}, status, version } = cluster;
  const other = ownedByOther(tags, owner);
  if (other) throw refuse(`it ${other}`, 'Release it there first.');
  if (status !== 'ACTIVE' && status !== 'UPDATING') throw refuse(`it is ${status}`, 'Take over a cluster that works.');
  const wrong = versionProblem(version, kubernetesVersion);
  if (wrong) throw refuse(wrong, 'Leave out spec.kubernetes.version to keep what it runs.');
  const facts: AdoptedFacts = {
    name: cluster.name,
    roleArn: cluster.roleArn,
    version,
    network: await networkOf(aws, cluster),
    tags: withoutAdoption(tags),
    letIn: cluster.accessConfig?.authenticationMode !== 'CONFIG_MAP' && (await isLeftToUs(aws, owner, cluster.name)),
  };
  return { facts: { ...facts }, isTaken: tags[ADOPTION_TAGS.uid] === owner.uid };
}

/** Facts on an unreadable cluster: enough to remove Coppice's resources from it. */
export const unseenCluster = ({ adopt }: AdoptingCluster): FoundCluster => {
  const name = clusterOfID(adopt.id)?.name ?? adopt.id;
  const network = { network: '', subnets: [] };
  return { facts: { name, roleArn: '', version: '', network, tags: {}, letIn: false }, isTaken: false };
};

async function describe(aws: AwsConnection, name: string): Promise<Described | undefined> {
  try {
    return (await getJson<{ cluster: Described }>(aws, 'eks', 'DescribeCluster', `/clusters/${name}`)).cluster;
  } catch (error) {
    if (awsCodeOf(error) === 'ResourceNotFoundException') return undefined;
    throw error;
  }
}

async function networkOf(aws: AwsConnection, { resourcesVpcConfig: vpc }: Described): Promise<NetworkOutputs> {
  const ids = [...(vpc?.subnetIds ?? [])].sort();
  const filters = Object.fromEntries(ids.map((id, index) => [`Filter.1.Value.${index + 1}`, id]));
  const answer = await query(aws, 'ec2', 'DescribeSubnets', { 'Filter.1.Name': 'subnet-id', ...filters });
  const zones = new Map(
    itemsAt(answer, 'subnetSet').map((subnet) => [textAt(subnet, 'subnetId'), textAt(subnet, 'availabilityZone')]),
  );
  return { network: vpc?.vpcId ?? '', subnets: ids.map((id) => ({ id, zone: zones.get(id) ?? '' })) };
}

/** Whether no foreign access entry admits the caller; foreign entries stay unchanged. */
async function isLeftToUs(aws: AwsConnection, owner: Owner, cluster: string): Promise<boolean> {
  const identity = textAt(await query(aws, 'sts', 'GetCallerIdentity'), 'GetCallerIdentityResult', 'Arn');
  const principal = await withPath(aws, policySource(identity) ?? identity);
  const path = `/clusters/${cluster}/access-entries/${encodeURIComponent(principal)}`;
  try {
    const { accessEntry } = await getJson<{ accessEntry: { tags?: Record<string, string> } }>(
      aws,
      'eks',
      'DescribeAccessEntry',
      path,
    );
    return accessEntry.tags?.[OWNER_TAGS.uid] === owner.uid;
  } catch (error) {
    if (awsCodeOf(error) === 'ResourceNotFoundException') return true;
    throw error;
  }
}

/** Completes a session's role ARN, which lacks the path that access entries contain. */
async function withPath(aws: AwsConnection, arn: string): Promise<string> {
  const role = /:role\/([^/]+)$/.exec(arn)?.[1];
  if (role === undefined) return arn;
  try {
    const { GetRoleResult } = (await query(aws, 'iam', 'GetRole', { RoleName: role })) as Record<string, Element>;
    return textAt(GetRoleResult as Element, 'Role', 'Arn') || arn;
  } catch {
    // Without the right to read the role it counts as a role without a path; an existing entry is then reported by
    // EKS.
    return arn;
  }
}
