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
  type GroupWanted,
  isLost,
  LossWatch,
  lookAtGroup,
  machinesOfNodes,
  Patience,
  withOutdated,
} from './control-plane-group-seen.ts';

/** How often it is looked whether there is anything to wait for still. */
export const LOOK_MS = 10_000;

const LOST = 'too many control plane machines are lost: etcd has no majority, and the cluster cannot be recovered';

type Etcd = Pick<EtcdClient, 'observe' | 'remove' | 'transferLeadership'>;

/** What a control plane on machines of a cloud is brought to its size with. */
interface GroupWork extends GroupWanted {
  now(): Date;
  /** Asks the cloud. */
  observe(): Promise<ControlPlaneGroupSeen>;
  /** Of the control plane's pool, as they are now. */
  nodes(): Node[];
  /** By the machines that were seen. */
  etcd(seen: ControlPlaneGroupSeen): Promise<Etcd>;
  /** The machines that etcd needs a majority of, by the names of their nodes, as they are written down. */
  noted(): readonly string[];
  note(voters: readonly string[]): Promise<void>;
  /**
   * Asks the cloud for so many, which are told how they join.
   * @param there how many of these there are
   * @param joined how many have joined
   */
  tell(machines: number, there: number, joined: number): Promise<void>;
  /** Has pods leave a machine, as long as they are waited for. */
  drain(machine: Machine): Promise<void>;
  /** Lets pods in again on those of these that were to go, and stay after all. */
  letIn(machines: readonly Machine[]): Promise<void>;
  /** Told at each step what is seen and what follows from it. */
  follow(observed: ControlPlaneGroupObservation, plan: ControlPlaneGroupPlan): void;
  /** Ends these machines, and asks for as many as are left. */
  end(machines: string[]): Promise<void>;
  removeNode(name: string): Promise<void>;
  say(reason: string, message: string): void;
  /** @param ms milliseconds */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** A majority of machines that is lost cannot come back. Throws once that is sure. */
export function looksLost(noted: readonly string[], seen: ControlPlaneGroupSeen, watch: LossWatch, now: Date): boolean {
  const looksSo = isLost(noted, seen);
  if (watch.isSure(looksSo, now)) throw configurationProblem(LOST, 'Delete the cluster and create it again.');
  return looksSo;
}

/** Takes one safe step after the other until all is as wanted; see planControlPlaneGroup. */
export async function bringGroupToSize(work: GroupWork, signal: AbortSignal): Promise<void> {
  const { desired } = work;
  const patience = new Patience();
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
    // Whose certificates near their end is unknown while its etcd is not reached: another machine would be asked for, let go, and asked for.
    const observed = withOutdated(looked, outdated);
    outdated = observed.machines.filter((machine) => machine.outdated).map(({ name }) => name);
    const voters = votersIn(observed.members ?? []);
    if (voters.length > 0 && voters.join() !== work.noted().join()) await work.note(voters);
    const plan = planControlPlaneGroup({ ...observed, drained });
    work.follow(observed, plan);
    if (plan.blocked) throw new Error(`the control plane cannot be brought to ${desired} machines: ${plan.waitFor}`);
    // From its first turn on: what held keys for the beginning goes.
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
      // Asked for when it was told.
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
