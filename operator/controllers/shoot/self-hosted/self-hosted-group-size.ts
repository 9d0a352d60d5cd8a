import type { ControlPlaneGroupSeen, Machine } from '../../../../providers/contract.ts';
import { CoppiceError, configurationProblem } from '../../../api/errors.ts';
import type { EtcdClient } from '../../../etcd/etcd-client.ts';
import type { Node } from '../../../kube/resources.ts';
import {
  type ControlPlaneGroupAction,
  type ControlPlaneGroupObservation,
  type ControlPlaneGroupPlan,
  planControlPlaneGroup,
  votersIn,
} from '../../../shoot/control-plane-group.ts';
import {
  CloudWait,
  type GroupWanted,
  isLost,
  LossWatch,
  lookAtGroup,
  machinesOfNodes,
  withOutdated,
} from './control-plane-group-seen.ts';

/** Polling interval. */
export const LOOK_MS = 10_000;

const LOST = 'too many control plane machines are lost: etcd has no majority, and the cluster cannot be recovered';

type Etcd = Pick<EtcdClient, 'observe' | 'remove' | 'transferLeadership'>;

/** Actions and observations for resizing a control plane on machines in a cloud. */
interface GroupWork extends GroupWanted {
  now(): Date;
  /** Observes the group in the cloud. */
  observe(): Promise<ControlPlaneGroupSeen>;
  /** Present nodes of the control plane's pool. */
  nodes(): Node[];
  /** etcd, through the observed machines. */
  etcd(seen: ControlPlaneGroupSeen): Promise<Etcd>;
  /** Recorded node names of the machines that etcd needs a majority of. */
  noted(): readonly string[];
  note(voters: readonly string[]): Promise<void>;
  /**
   * Requests this number of machines, with join data.
   * @param there existing ones among them
   * @param joined number that has joined
   */
  tell(machines: number, there: number, joined: number): Promise<void>;
  /** Drains a machine within the drain timeout. */
  drain(machine: Machine): Promise<void>;
  /** Uncordons drained machines that stay. */
  letIn(machines: readonly Machine[]): Promise<void>;
  /** Called in each step with observation and plan. */
  follow(observed: ControlPlaneGroupObservation, plan: ControlPlaneGroupPlan): void;
  /** Ends these machines, and lowers the desired number. */
  end(machines: string[]): Promise<void>;
  removeNode(name: string): Promise<void>;
  say(reason: string, message: string): void;
  /** @param ms milliseconds */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** Whether a majority looks lost; it cannot come back. Throws once that is certain. */
export function looksLost(noted: readonly string[], seen: ControlPlaneGroupSeen, watch: LossWatch, now: Date): boolean {
  const looksSo = isLost(noted, seen);
  if (watch.isSure(looksSo, now)) throw configurationProblem(LOST, 'Delete the cluster and create it again.');
  return looksSo;
}

/** Takes one safe step after the other until the group is as desired; see planControlPlaneGroup. */
export async function bringGroupToSize(work: GroupWork, signal: AbortSignal): Promise<void> {
  const { desired } = work;
  const patience = new CloudWait();
  const watch = new LossWatch();
  const drained: string[] = [];
  let outdated: readonly string[] = [];
  for (;;) {
    signal.throwIfAborted();
    const seen = await work.observe();
    if (looksLost(work.noted(), seen, watch, work.now())) {
      await work.sleep(LOOK_MS, signal);
      continue;
    }
    const etcd = await work.etcd(seen);
    const looked = await lookAtGroup(seen, work, work.now(), {
      nodes: () => work.nodes(),
      etcd: () => etcd.observe(),
    });
    // Remember outdated machines: while etcd is unreachable the expiry of certificates is unknown, and the plan would
    // alternate.
    const observed = withOutdated(looked, outdated);
    outdated = observed.machines.filter((machine) => machine.outdated).map(({ name }) => name);
    const voters = votersIn(observed.members ?? []);
    if (voters.length > 0 && voters.join() !== work.noted().join()) await work.note(voters);
    const plan = planControlPlaneGroup({ ...observed, drained });
    work.follow(observed, plan);
    if (plan.blocked) throw new Error(`the control plane cannot be brought to ${desired} machines: ${plan.waitFor}`);
    // Also in the first round: it removes the template with the keys of the first machine.
    const there = observed.machines.filter(({ going }) => !going);
    const joined = there.filter((machine) => machine.joined).length;
    await work.tell(plan.action?.type === 'ask-for' ? plan.action.machines : seen.asked, there.length, joined);
    if (!plan.action && !plan.waitFor) return work.letIn(seen.machines);
    if (!plan.action && seen.failure !== undefined)
      throw new CoppiceError('ERR_RETRYABLE_INFRA_DEPENDENCIES', `waiting for ${plan.waitFor}: ${seen.failure}`);
    if (plan.action) await act(work, etcd, plan.action, seen);
    if (plan.action?.type === 'drain') drained.push(plan.action.name);
    await work.sleep(patience.next(plan.action ? undefined : plan.waitFor), signal);
  }
}

async function act(
  work: GroupWork,
  etcd: Etcd,
  action: ControlPlaneGroupAction,
  seen: ControlPlaneGroupSeen,
): Promise<void> {
  switch (action.type) {
    case 'ask-for':
      // `tell` requests the machines.
      return work.say('ControlPlaneResized', `the control plane gets ${action.machines} machines`);
    case 'end-machines':
      work.say('ControlPlaneResized', `the control plane goes on without ${action.names.join(', ')}`);
      return work.end(machinesOfNodes(seen, action.names));
    case 'drain':
      return work.drain(seen.machines.find(({ nodeName }) => nodeName === action.name)!);
    case 'transfer-leadership':
      return etcd.transferLeadership(action.from, action.to);
    case 'remove-member':
      work.say('EtcdMemberRemoved', `the operator removes ${action.name} from etcd`);
      return etcd.remove(action.id);
    case 'remove-node':
      return work.removeNode(action.name);
  }
}
