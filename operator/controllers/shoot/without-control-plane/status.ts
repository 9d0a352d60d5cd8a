import type { MachinesSeen } from '../../../../providers/contract.ts';
import { nthAddress } from '../../../api/address-range.ts';
import { NO_CONTROL_PLANE } from '../../../api/conditions.ts';
import type { Shoot, ShootStatus } from '../../../api/shoot.ts';
import { controlPlaneMembers, shootProfileName } from '../../../api/shoot.ts';
import { clusterResource } from '../../../clusters/capacity.ts';
import type { Node } from '../../../kube/resources.ts';
import { say } from '../../conditions.ts';
import type { Operation } from '../operation.ts';
import type { CommonFacts } from '../status/facts.ts';
import { commonFacts } from '../status/facts.ts';
import { nodesCondition } from '../status/node-conditions.ts';
import { desiredNodes, shootStatusOf } from '../status/status-of.ts';
import { endpointWithoutControlPlane, machinesNow } from './tasks.ts';

/** Status of a Shoot that exists as objects only, from the caches. */
export async function statusWithoutControlPlane(op: Operation, shoot: Shoot, now: Date): Promise<ShootStatus> {
  const facts = commonFacts(op, shoot, endpointWithoutControlPlane(op));
  return statusOfKept(facts, machinesNow(op), op.values.networks.pods, now);
}

/**
 * Status of a Shoot that exists as objects only. Pure. Ready means that all its objects exist; every other condition
 * says that nothing answers. @param podRange pod address range in CIDR notation
 */
export function statusOfKept(facts: CommonFacts, observed: MachinesSeen, podRange: string, now: Date): ShootStatus {
  const { shoot, pools } = facts;
  const members = controlPlaneMembers(shoot.spec);
  const serving = observed.controlPlane.filter(({ ready }) => ready).length;
  const machines = observed.machines.filter(({ phase }) => phase !== 'Terminating');
  const readyMachines = machines.filter(({ ready }) => ready);
  const desired = desiredNodes(pools);
  const nodes = nodesCondition(
    { inside: observed, pools: [], usable: undefined },
    desired,
    machines.length,
    readyMachines.length,
  );
  const profile = shootProfileName(shoot.spec);
  const none = `NO CONTROL PLANE: CloudProfile ${profile} says that none is run (simulation.controlPlane.run: false). Nothing answers behind the kubeconfig and no workload can run: keys, kubeconfig and machines exist as objects only, without a control plane, for scale tests`;
  const errors = facts.errors.map(({ description }) => description).join('; ');
  const codes = [...new Set(facts.errors.flatMap((error) => error.codes ?? []))];
  const settled = facts.observedGeneration === shoot.metadata.generation && serving >= members;
  const ready =
    settled && nodes.status === 'True'
      ? say('Ready', true, 'ObjectsOnly', none)
      : errors !== ''
        ? say('Ready', false, 'OperationFailed', errors, codes)
        : say(
            'Ready',
            false,
            (settled && nodes.reason) || 'Reconciling',
            (settled && nodes.message) || 'the operator stores the objects',
          );
  const conditions = [
    ready,
    say(NO_CONTROL_PLANE, true, 'NotRun', none),
    say('APIServerAvailable', false, 'NotRun', 'no API server is run: nothing answers behind the kubeconfig'),
    nodes,
  ];
  const resource = clusterResource(withPodRanges(observed.nodes, podRange), []);
  const seen = { controlPlane: { desired: members, ready: serving }, machines, readyMachines, resource };
  return shootStatusOf({ ...facts, madeOf: { ...facts.madeOf, lacksControlPlane: true } }, seen, conditions, now);
}

/** Addresses of a node's range, as assigned by the controller manager (--node-cidr-mask-size: 24 by default). */
const NODE_ADDRESSES = 256;

/** Assigns pod ranges to nodes, as the controller manager does; nodes beyond the range get none. */
function withPodRanges(nodes: readonly Node[], podRange: string): Node[] {
  if (podRange.includes(':')) return [...nodes];
  return nodes.map((node, index) => {
    try {
      const podCIDR = `${nthAddress(podRange, index * NODE_ADDRESSES)}/24`;
      return { ...node, spec: { ...node.spec, podCIDR } };
    } catch {
      return node;
    }
  });
}
