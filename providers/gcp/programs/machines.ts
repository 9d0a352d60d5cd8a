import { Firewall, InstanceTemplate, RegionInstanceGroupManager } from '@pulumi/gcp/compute/index.js';
import { Account } from '@pulumi/gcp/serviceaccount/index.js';
import type { Output } from '@pulumi/pulumi';
import { shortHash } from '../../../operator/api/names.ts';
import type { MachinePool, MachinesInputs } from '../../cloud.ts';
import type { ProgramOutputs } from '../../pulumi/program.ts';
import { POOL_TAG } from '../../tags.ts';
import { descriptionOf, labelsOf } from '../labels.ts';
import { computeName, instanceBaseName, serviceAccountName } from '../names.ts';

const KUBELET_PORT = '10250';

/** A regional managed instance group per pool, for clusters whose control plane is not Google's. */
export function machines(inputs: MachinesInputs): ProgramOutputs {
  const { owner, pools } = inputs;
  // An identity by which walls know the machines; it has no role, so to Google they may do nothing.
  const account = new Account('machines', {
    accountId: serviceAccountName(owner),
    displayName: owner.technicalID,
    description: descriptionOf(owner),
  });
  walls(inputs, account.email);
  const groups = pools.map((pool) => [pool.name, group(inputs, pool, template(inputs, pool, account.email))] as const);
  return {
    extra: { serviceAccount: account.email },
    groups: Object.fromEntries(groups.map(([pool, made]) => [pool, made.name])),
  };
}

/** Nothing comes in from outside of the network but what these let in: that is how Google's networks are. */
function walls({ owner, network, kubeletClients }: MachinesInputs, account: Output<string>): void {
  const common = { network: network.network, description: descriptionOf(owner), targetServiceAccounts: [account] };
  new Firewall('among-machines', {
    ...common,
    name: computeName(owner, 'among-machines'),
    sourceServiceAccounts: [account],
    allows: [{ protocol: 'all' }],
  });
  if (kubeletClients.length === 0) return;
  new Firewall('kubelets', {
    ...common,
    name: computeName(owner, 'kubelets'),
    sourceRanges: kubeletClients,
    allows: [{ protocol: 'tcp', ports: [KUBELET_PORT] }],
  });
}

function template({ owner, network }: MachinesInputs, pool: MachinePool, account: Output<string>): InstanceTemplate {
  const labels = labelsOf(owner, { [POOL_TAG]: pool.name });
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
    // A template cannot be changed: another one has another name, and is there before the old one goes.
    name: computeName(owner, `${pool.name}-${shortHash(JSON.stringify(fixed))}`),
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

function group({ owner, region, zones }: MachinesInputs, pool: MachinePool, made: InstanceTemplate) {
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
      // Whether machines come up is told by the machines, pool by pool, not by one failed run for all.
      waitForInstances: false,
    },
    { ignoreChanges: ['description', ...(pool.desired === undefined ? ['targetSize'] : [])] },
  );
}
