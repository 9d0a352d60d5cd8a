import {
  Firewall,
  InstanceTemplate,
  RegionInstanceGroupManager,
  type RegionInstanceGroupManagerArgs,
} from '@pulumi/gcp/compute/index.js';
import { Account } from '@pulumi/gcp/serviceaccount/index.js';
import type { Input, Output } from '@pulumi/pulumi';
import { shortHash } from '../../../operator/api/names.ts';
import type { MachinePool, MachinesInputs, NetworkOutputs, Owner } from '../../cloud.ts';
import type { ProgramOutputs } from '../../pulumi/program.ts';
import { POOL_HASH_TAG, POOL_TAG } from '../../tags.ts';
import { descriptionOf, gcpLabelsOf } from '../labels.ts';
import { computeName, instanceBaseName, serviceAccountName } from '../names.ts';

const KUBELET_PORT = '10250';

/** A regional managed instance group per pool, for clusters whose control plane is not Google's. */
export function machines(inputs: MachinesInputs): ProgramOutputs {
  const { owner, pools } = inputs;
  // With a control plane on machines the endpoint's layer has created it.
  const account = inputs.endpoint?.extra.serviceAccount ?? machineIdentity(owner, inputs.network);
  kubeletWall(inputs, account);
  const groups = pools.map(
    (pool) => [pool.name, instanceGroup(inputs, pool, instanceTemplate(inputs, pool, account))] as const,
  );
  return {
    extra: { serviceAccount: account },
    groups: Object.fromEntries(groups.map(([pool, made]) => [pool, made.name])),
  };
}

/**
 * Service account by which firewall rules identify a cluster's machines and let them reach each other; it has no role,
 * and so no rights at Google. Google's networks admit nothing from outside except by rules.
 */
export function machineIdentity(owner: Owner, network: NetworkOutputs): Output<string> {
  const description = descriptionOf(owner);
  const { email } = new Account('machines', {
    accountId: serviceAccountName(owner),
    displayName: owner.technicalID,
    description,
  });
  new Firewall('among-machines', {
    network: network.network,
    description,
    targetServiceAccounts: [email],
    name: computeName(owner, 'among-machines'),
    sourceServiceAccounts: [email],
    allows: [{ protocol: 'all' }],
  });
  return email;
}

function kubeletWall({ owner, network, kubeletClients }: MachinesInputs, account: Input<string>): void {
  if (kubeletClients.length === 0) return;
  new Firewall('kubelets', {
    network: network.network,
    description: descriptionOf(owner),
    targetServiceAccounts: [account],
    name: computeName(owner, 'kubelets'),
    sourceRanges: kubeletClients,
    allows: [{ protocol: 'tcp', ports: [KUBELET_PORT] }],
  });
}

/**
 * Instance template of a pool.
 * @param told machine metadata, where it differs from the pool's user data
 */
export function instanceTemplate(
  { owner, network }: Pick<MachinesInputs, 'owner' | 'network'>,
  pool: MachinePool,
  account: Input<string>,
  told?: Record<string, Input<string>>,
): InstanceTemplate {
  const hash = pool.hash !== undefined && { [POOL_HASH_TAG]: pool.hash };
  const labels = gcpLabelsOf(owner, { [POOL_TAG]: pool.name, ...hash });
  const subnetwork = network.subnets[0]!.id;
  const fixed = {
    machineType: pool.machineType,
    labels,
    disks: [
      {
        boot: true,
        autoDelete: true,
        sourceImage: pool.image,
        labels,
        ...(pool.diskGiB !== undefined && { diskSizeGb: pool.diskGiB }),
      },
    ],
    // Without accessConfigs there is no public address.
    networkInterfaces: [{ subnetwork }],
    metadata: { 'user-data': pool.userData, 'block-project-ssh-keys': 'true' },
    // Secure boot rejects unsigned kernel modules, which GPU drivers need.
    shieldedInstanceConfig: {
      enableSecureBoot: pool.gpu === 0,
      enableVtpm: true,
      enableIntegrityMonitoring: true,
    },
    scheduling: schedulingOf(pool),
  };
  return new InstanceTemplate(`template-${pool.name}`, {
    ...fixed,
    ...(told && { metadata: { ...told, 'block-project-ssh-keys': 'true' } }),
    // Templates are immutable: a changed one has another name, and exists before the old one is deleted.
    name: pool.template ?? computeName(owner, `${pool.name}-${shortHash(JSON.stringify(fixed))}`),
    description: descriptionOf(owner),
    serviceAccount: { email: account, scopes: ['https://www.googleapis.com/auth/cloud-platform'] },
  });
}

/** Spot and GPU machines cannot be live-migrated during host maintenance. */
function schedulingOf({ spot, gpu }: MachinePool) {
  if (spot) {
    return {
      provisioningModel: 'SPOT',
      preemptible: true,
      automaticRestart: false,
      onHostMaintenance: 'TERMINATE',
      // The group creates another one; a stopped machine would keep its billed disk.
      instanceTerminationAction: 'DELETE',
    };
  }
  return { automaticRestart: true, onHostMaintenance: gpu > 0 ? 'TERMINATE' : 'MIGRATE' };
}

/** @param more further settings of this group */
export function instanceGroup(
  { owner, region, zones }: Pick<MachinesInputs, 'owner' | 'region' | 'zones'>,
  pool: MachinePool,
  made: InstanceTemplate,
  more: Partial<RegionInstanceGroupManagerArgs> = {},
): RegionInstanceGroupManager {
  return new RegionInstanceGroupManager(
    `pool-${pool.name}`,
    {
      name: computeName(owner, pool.name),
      description: descriptionOf(owner),
      region,
      baseInstanceName: instanceBaseName(owner, pool.name),
      distributionPolicyZones: pool.zones.length > 0 ? pool.zones : zones,
      // A zone without capacity must not block the others.
      distributionPolicyTargetShape: pool.spot ? 'ANY' : 'BALANCED',
      versions: [{ instanceTemplate: made.selfLinkUnique }],
      targetSize: pool.desired ?? pool.minimum,
      // Google would replace machines, or move them between zones, with pods on them: Coppice drains and chooses.
      updatePolicy: { type: 'OPPORTUNISTIC', minimalAction: 'REPLACE', instanceRedistributionType: 'NONE' },
      // A recreated machine (failed host, or reclaimed spot) would get the original metadata, whose join token has
      // expired (docs.cloud.google.com/compute/docs/instance-groups/update-on-repair).
      instanceLifecyclePolicy: { forceUpdateOnRepair: 'YES' },
      // Machines report per pool whether they came up, instead of one failed run for all.
      waitForInstances: false,
      ...more,
    },
    { ignoreChanges: ['description', ...(pool.desired === undefined ? ['targetSize'] : [])] },
  );
}
