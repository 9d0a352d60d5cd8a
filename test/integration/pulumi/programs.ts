import * as ec2 from '@pulumi/aws/ec2/index.js';
import * as eks from '@pulumi/aws/eks/index.js';
import * as iam from '@pulumi/aws/iam/index.js';
import { secret } from '@pulumi/pulumi';
import type { Programs } from '../../../providers/pulumi/program.ts';

/** What the test program is asked for. */
export interface Inputs {
  name: string;
  /** Wanted sizes of node groups, by name. */
  pools: Record<string, number>;
  version?: string;
  /** Of node groups, GiB. */
  diskSize?: number;
  /** Is given back as a secret. */
  token?: string;
  /** The worker ends, instead of declaring anything. */
  crash?: boolean;
  /** A message to fail with, instead of declaring anything. */
  fail?: string;
}

/** A small cluster: resources with a name that the cloud wants unique, and without one (network, subnets). */
function cluster(inputs: Inputs) {
  if (inputs.crash) process.abort();
  if (inputs.fail !== undefined) throw new Error(inputs.fail);
  // Every resource says by its tags whose and which one it is: that is how the tests' `adopt` finds it.
  const tagged = (part: string) => ({ owner: inputs.name, part });
  const network = new ec2.Vpc('network', { cidrBlock: '10.0.0.0/16', tags: tagged('network') });
  const subnets = ['a', 'b'].map(
    (zone, i) =>
      new ec2.Subnet(`subnet-${zone}`, {
        vpcId: network.id,
        cidrBlock: `10.0.${i}.0/24`,
        availabilityZone: `eu-central-1${zone}`,
        tags: tagged(`subnet-${zone}`),
      }),
  );
  const subnetIds = subnets.map(({ id }) => id);
  const role = new iam.Role('role', { name: `${inputs.name}-role`, assumeRolePolicy: '{}', tags: tagged('role') });
  const control = new eks.Cluster('cluster', {
    name: inputs.name,
    version: inputs.version ?? '1.35',
    roleArn: role.arn,
    vpcConfig: { subnetIds },
    tags: tagged('cluster'),
  });
  for (const [name, size] of Object.entries(inputs.pools)) {
    new eks.NodeGroup(name, {
      clusterName: control.name,
      nodeGroupName: name,
      nodeRoleArn: role.arn,
      subnetIds,
      scalingConfig: { minSize: 0, maxSize: 9, desiredSize: size },
      ...(inputs.diskSize !== undefined && { diskSize: inputs.diskSize }),
      tags: tagged(name),
    });
  }
  return { endpoint: control.endpoint, ...(inputs.token !== undefined && { token: secret(inputs.token) }) };
}

export const programs: Programs = { cluster };
