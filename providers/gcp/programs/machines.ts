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
  // With a control plane on machines beside these, it is made with its endpoint.
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
 * An identity by which walls know the machines of a cluster, and lets them reach each other; it has no role, so to Google they may do
 * nothing. Nothing comes in from outside of the network but what walls let in: that is how Google's networks are.
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
 * The template of a pool.
 * @param told what machines find in their metadata, where it is not the pool's user data as it is
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
    // Without accessConfigs there is no address of the internet.
    networkInterfaces: [{ subnetwork }],
    metadata: { 'user-data': pool.userData, 'block-project-ssh-keys': 'true' },
    // Secure boot refuses kernel modules that are not signed, and GPUs need a driver.
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
    // A template cannot be changed: another one has another name, and is there before the old one goes.
    name: pool.template ?? computeName(owner, `${pool.name}-${shortHash(JSON.stringify(fixed))}`),
    description: descriptionOf(owner),
    serviceAccount: { email: account, scopes: ['https://www.googleapis.com/auth/cloud-platform'] },
  });
}

/** Spot machines and those with GPUs cannot be moved to another host when theirs is serviced. */
function schedulingOf({ spot, gpu }: MachinePool) {
  if (spot) {
    return {
      provisioningModel: 'SPOT',
      preemptible: true,
      automaticRestart: false,
      onHostMaintenance: 'TERMINATE',
      // The group makes another one; a stopped one would keep its disk, and be paid for.
      instanceTerminationAction: 'DELETE',
    };
  }
  return { automaticRestart: true, onHostMaintenance: gpu > 0 ? 'TERMINATE' : 'MIGRATE' };
}

/** @param more what only this group is like */
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
      // A zone without machines must not keep the others from having them.
      distributionPolicyTargetShape: pool.spot ? 'ANY' : 'BALANCED',
      versions: [{ instanceTemplate: made.selfLinkUnique }],
      targetSize: pool.desired ?? pool.minimum,
      // Google would replace machines, and move them to other zones, with nodes and pods on them: who drains decides which go.
      updatePolicy: { type: 'OPPORTUNISTIC', minimalAction: 'REPLACE', instanceRedistributionType: 'NONE' },
      // A machine made again (its host failed, or it was spot and taken away) would be told what the first one was, whose token for joining
      // has expired since (docs.cloud.google.com/compute/docs/instance-groups/update-on-repair).
      instanceLifecyclePolicy: { forceUpdateOnRepair: 'YES' },
      // Whether machines come up is told by the machines, pool by pool, not by one failed run for all.
      waitForInstances: false,
      ...more,
    },
    { ignoreChanges: ['description', ...(pool.desired === undefined ? ['targetSize'] : [])] },
  );
}
