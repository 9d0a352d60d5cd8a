import { AutoScalingClient } from '@aws-sdk/client-auto-scaling';
import { EC2Client } from '@aws-sdk/client-ec2';
import { EKSClient } from '@aws-sdk/client-eks';
import { ElasticLoadBalancingV2Client } from '@aws-sdk/client-elastic-load-balancing-v2';
import { IAMClient } from '@aws-sdk/client-iam';
import { KMSClient } from '@aws-sdk/client-kms';
import { ResourceGroupsTaggingAPIClient } from '@aws-sdk/client-resource-groups-tagging-api';
import { Route53Client } from '@aws-sdk/client-route-53';
import { S3Client } from '@aws-sdk/client-s3';
import { STSClient } from '@aws-sdk/client-sts';
import { expect, it } from 'vitest';
import { awsHostOf, partitionOf } from '../../../../providers/aws/partitions.ts';

const CLIENTS = {
  sts: STSClient,
  iam: IAMClient,
  ec2: EC2Client,
  eks: EKSClient,
  kms: KMSClient,
  autoscaling: AutoScalingClient,
  elasticloadbalancing: ElasticLoadBalancingV2Client,
  tagging: ResourceGroupsTaggingAPIClient,
  route53: Route53Client,
  s3: S3Client,
} as const;
/** One of each partition, and more where services of the whole partition have one region. */
const REGIONS = [
  ...['eu-central-1', 'us-east-1', 'cn-north-1', 'cn-northwest-1', 'us-gov-west-1', 'us-gov-east-1', 'eusc-de-east-1'],
  ...['us-iso-east-1', 'us-iso-west-1', 'us-isob-east-1', 'eu-isoe-west-1', 'us-isof-south-1', 'us-isof-east-1'],
];

/** What AWS' own rules of endpoints say of a region, which each client brings. */
interface Rules {
  endpointProvider(parameters: object): { url: URL; properties?: { authSchemes?: { signingRegion?: string }[] } };
}

it.each(Object.entries(CLIENTS))('the host of %s equals that of the AWS SDK in every partition', (service, Client) => {
  const config = new Client({ region: 'us-east-1' }).config as unknown as Rules;
  for (const region of REGIONS) {
    const { url, properties } = config.endpointProvider({ Region: region, UseFIPS: false, UseDualStack: false });
    const theirs = { host: url.host, region: properties?.authSchemes?.[0]?.signingRegion ?? region };
    const { iam, route53 } = partitionOf(region);
    const ours = { iam, route53 }[service as string] ?? { host: awsHostOf(service, region), region };
    expect([region, ours]).toEqual([region, theirs]);
  }
});
