import { checkedRegion } from '../../operator/api/region.ts';

/** An AWS partition with its own accounts, endpoints and ARNs. */
export interface Partition {
  /** Second part of every ARN. */
  id: string;
  dnsSuffix: string;
  /** IAM's only endpoint in the partition, and the region of its signatures. */
  iam: { host: string; region: string };
  /** The same for Route 53. */
  route53: { host: string; region: string };
  /** Service principal of EC2; EKS' principals are the same everywhere. */
  ec2Principal: string;
}

const ec2Principal = 'ec2.amazonaws.com';

const COMMERCIAL: Partition = {
  id: 'aws',
  dnsSuffix: 'amazonaws.com',
  iam: { host: 'iam.amazonaws.com', region: 'us-east-1' },
  route53: { host: 'route53.amazonaws.com', region: 'us-east-1' },
  ec2Principal,
};

/**
 * Sources: botocore 1.43.11 data/partitions.json (regions, suffixes) and
 * data/{iam/2010-05-08,route53/2013-04-01}/endpoint-rule-set-1.json.gz (IAM, Route 53); iam:PassedToService in Karpenter's IAM policies
 * (principal in China); eksctl pkg/apis/eksctl.io/v1alpha5/partitions.go (principals of the isolated ones).
 */
const OTHERS: readonly (readonly [regions: RegExp, partition: Partition])[] = [
  [
    /^cn-/,
    {
      id: 'aws-cn',
      dnsSuffix: 'amazonaws.com.cn',
      iam: { host: 'iam.cn-north-1.amazonaws.com.cn', region: 'cn-north-1' },
      route53: { host: 'route53.amazonaws.com.cn', region: 'cn-northwest-1' },
      ec2Principal: 'ec2.amazonaws.com.cn',
    },
  ],
  [
    /^us-gov-/,
    {
      id: 'aws-us-gov',
      dnsSuffix: 'amazonaws.com',
      iam: { host: 'iam.us-gov.amazonaws.com', region: 'us-gov-west-1' },
      route53: { host: 'route53.us-gov.amazonaws.com', region: 'us-gov-west-1' },
      ec2Principal,
    },
  ],
  [
    /^eusc-/,
    {
      id: 'aws-eusc',
      dnsSuffix: 'amazonaws.eu',
      iam: { host: 'iam.eusc-de-east-1.amazonaws.eu', region: 'eusc-de-east-1' },
      route53: { host: 'route53.amazonaws.eu', region: 'eusc-de-east-1' },
      ec2Principal,
    },
  ],
];

/** Partitions without internet access, by region prefix. */
const ISOLATED: readonly (readonly [prefix: string, id: string, first: string, dnsSuffix: string, ec2?: string])[] = [
  ['us-iso-', 'aws-iso', 'us-iso-east-1', 'c2s.ic.gov', 'ec2.c2s.ic.gov'],
  ['us-isob-', 'aws-iso-b', 'us-isob-east-1', 'sc2s.sgov.gov', 'ec2.sc2s.sgov.gov'],
  ['eu-isoe-', 'aws-iso-e', 'eu-isoe-west-1', 'cloud.adc-e.uk'],
  ['us-isof-', 'aws-iso-f', 'us-isof-south-1', 'csp.hci.ic.gov'],
];

function isolated(region: string): Partition | undefined {
  const found = ISOLATED.find(([prefix]) => region.startsWith(prefix));
  if (!found) return undefined;
  const [, id, first, dnsSuffix, ec2 = ec2Principal] = found;
  const iam = { host: `iam.${first}.${dnsSuffix}`, region: first };
  return { id, dnsSuffix, iam, route53: { host: `route53.${dnsSuffix}`, region: first }, ec2Principal: ec2 };
}

/** Host of a service in a region. Throws a configuration problem when it would not be AWS' own. */
export const awsHostOf = (service: string, region: string): string =>
  `${service}.${checkedRegion(region)}.${partitionOf(region).dnsSuffix}`;

/** Partition of a region. */
export const partitionOf = (region: string): Partition =>
  OTHERS.find(([regions]) => regions.test(region))?.[1] ?? isolated(region) ?? COMMERCIAL;
