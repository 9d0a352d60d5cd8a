import * as ec2 from '@pulumi/aws/ec2/index.js';
import type { CloudPool, Owner } from '../../cloud.ts';
import { POOL_TAG } from '../../tags.ts';
import { physicalName } from '../names.ts';

/**
 * Launch template of a pool. IMDSv2 with one hop only: a pod, one hop further, cannot obtain the node's role. The root
 * volume is encrypted. Instances, volumes and interfaces are tagged by the house rules.
 */
export function launchTemplate(
  owner: Owner,
  pool: CloudPool,
  rootDevice: string,
  more: ec2.LaunchTemplateArgs = {},
): ec2.LaunchTemplate {
  return new ec2.LaunchTemplate(`pool-${pool.name}`, {
    name: physicalName('aws:ec2/launchTemplate:LaunchTemplate', owner, pool.name),
    updateDefaultVersion: true,
    metadataOptions: { httpEndpoint: 'enabled', httpTokens: 'required', httpPutResponseHopLimit: 1 },
    blockDeviceMappings: [
      {
        deviceName: rootDevice,
        ebs: {
          encrypted: 'true',
          deleteOnTermination: 'true',
          volumeType: 'gp3',
          ...(pool.diskGiB !== undefined && { volumeSize: pool.diskGiB }),
        },
      },
    ],
    tags: { [POOL_TAG]: pool.name },
    ...more,
  });
}
