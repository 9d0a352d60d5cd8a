/** A part of AWS with its own accounts, endpoints and ARNs. */
export interface Partition {
  /** Second part of every ARN. */
  id: string;
  dnsSuffix: string;
  /** IAM has one endpoint in a partition, which takes signatures for this region. */
  iam: { host: string; region: string };
  /** The same for Route 53. */
  route53: { host: string; region: string };
  /** Service principal of EC2; those of EKS are the same everywhere. */
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
 * Sources: botocore 1.43.11 data/partitions.json (regions, suffixes) and data/{iam/2010-05-08,route53/2013-04-01}/endpoint-rule-set-1.json.gz (IAM, Route 53);
 * iam:PassedToService in Karpenter's IAM policies (principal in China).
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

/** The partition that a region belongs to. */
export const partitionOf = (region: string): Partition =>
  OTHERS.find(([regions]) => regions.test(region))?.[1] ?? COMMERCIAL;
