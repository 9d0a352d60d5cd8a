import type { ControlPlaneMachines, ControlPlaneMachinesSeen, Pool } from '../../../../providers/contract.ts';
import { configurationProblem } from '../../../api/errors.ts';
import { LABELS } from '../../../api/group.ts';
import { controlPlaneMachineName } from '../../../api/names.ts';
import type { EtcdClient } from '../../../etcd/etcd-client.ts';
import { sleep } from '../../../kube/clock.ts';
import type { KubeObject, Node } from '../../../kube/resources.ts';
import {
  type ControlPlaneSizeAction,
  FEWEST_TO_REPLACE,
  planControlPlaneSize,
} from '../../../shoot/control-plane-size.ts';
import { kubeadmInit, kubeadmJoin, kubeadmKeys, kubeadmYAML } from '../../../shoot/kubeadm.ts';
import { etcdPeerURL } from '../../../shoot/values.ts';
import { openEtcd } from '../etcd-access.ts';
import type { Operation } from '../operation.ts';
import { shootConnection } from '../tasks/apply-inside.ts';
import { isChangingKeys } from './encryption.ts';
import { noteIn, writeNote } from './self-hosted.ts';
import { drainOf, letIn, Replacement, wantedOfMachines } from './self-hosted-replace.ts';
import { JOINED_LABEL } from './self-hosted-status.ts';

/** Polling interval while a member joins or leaves; etcd has no watch for members. */
const POLL_MS = 500;
/** Polling interval while waiting; a volume is recreated some time after its machine. */
const LOOK_MS = 3000;

/** Control plane machines in the seed with their provider. */
export interface SeedMachines {
  readonly pool: Pool;
  readonly machines: ControlPlaneMachines;
}

/** Applies the present number of machines; the first one if there is none. `asked`: another number. */
export async function applyControlPlaneMachines(op: Operation, own: SeedMachines, asked?: number): Promise<void> {
  const { pki, values } = op;
  const { machines, pool } = own;
  const context = op.context();
  const seen = await machines.observe(context, pool.name);
  const note = noteIn(op);
  if (isLost(seen, note)) throw volumeLost();
  const noted = ordinalsNoted(note);
  // A deleted StatefulSet comes back with its former number: fewer would have no majority.
  const count = asked ?? (seen.asked || Math.max(0, ...noted) + 1);
  await machines.reconcile(
    context,
    { ...pool, count },
    {
      keys: kubeadmKeys(pki),
      init: kubeadmYAML(...kubeadmInit(values, pki)),
      join: kubeadmYAML(kubeadmJoin()),
      addresses: values.addresses.etcd,
      mayInitialise: note === undefined,
      noted,
    },
  );
}

const volumeLost = () =>
  configurationProblem(
    "the only control plane machine lost its volume, and etcd's data with it: the cluster cannot be recovered",
    'Delete the cluster and create it again.',
  );

/** Whether the only volume with the cluster's state was replaced by an empty one. */
function isLost({ asked, volumes }: ControlPlaneMachinesSeen, note: KubeObject | undefined): boolean {
  return asked === 1 && lostVolumes(volumes, note).includes(0);
}

/** Rejects once the cluster's state is known to be lost; else on abort. Runs beside other waits. */
export async function untilLost(op: Operation, { machines, pool }: SeedMachines, signal: AbortSignal): Promise<never> {
  for (;;) {
    if (isLost(await machines.observe(op.context(), pool.name), noteIn(op))) throw volumeLost();
    await sleep(LOOK_MS, signal);
    signal.throwIfAborted();
  }
}

/** Ordinals whose volume differs from the recorded one. */
function lostVolumes(volumes: ControlPlaneMachinesSeen['volumes'], note: KubeObject | undefined): number[] {
  const noted = (note?.data ?? {}) as Record<string, string>;
  return volumes
    .filter(({ ordinal, uid }) => noted[noteOf(ordinal)] !== undefined && noted[noteOf(ordinal)] !== uid)
    .map(({ ordinal }) => ordinal);
}

/** Records that the cluster was initialised, and which volume holds its state. */
export async function noteFirstVolume(op: Operation, own: SeedMachines, signal: AbortSignal): Promise<void> {
  const { volumes } = await own.machines.observe(op.context(), own.pool.name);
  if (!hasAllVolumes(volumes, 1)) throw new Error('the first machine of the control plane has no volume');
  await noteVolumes(op, own, volumes, signal);
}

async function noteVolumes(
  op: Operation,
  own: SeedMachines,
  volumes: ControlPlaneMachinesSeen['volumes'],
  signal: AbortSignal,
): Promise<void> {
  const noted = Object.fromEntries(volumes.map(({ ordinal, uid }) => [noteOf(ordinal), uid]));
  // Tell machines at once: one that lost its data must not rejoin before its member was removed.
  if (await writeNote(op, own.pool, noted, signal)) await applyControlPlaneMachines(op, own);
}

/** Ordinals with recorded volumes. */
const ordinalsNoted = (note: KubeObject | undefined): number[] =>
  Object.keys(note?.data ?? {})
    .flatMap((key) => /^volume-(\d+)$/.exec(key)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);

/** Whether each machine has a volume: during a replacement one is missing. */
const hasAllVolumes = (volumes: ControlPlaneMachinesSeen['volumes'], machines: number): boolean =>
  Array.from({ length: machines }, (_, ordinal) => ordinal).every((ordinal) =>
    volumes.some((volume) => volume.ordinal === ordinal),
  );

const noteOf = (ordinal: number): string => `volume-${ordinal}`;

/** Changes the control plane's machines to the desired ones, one safe step at a time; see planControlPlaneSize. */
export async function reconcileControlPlaneSize(op: Operation, own: SeedMachines, signal: AbortSignal): Promise<void> {
  const { values } = op;
  // Stand-ins for a single machine stay until the rotation's last step, which needs them again.
  const desired = isChangingKeys(op) ? Math.max(values.replicas, FEWEST_TO_REPLACE) : values.replicas;
  const { machines, pool } = own;
  const podName = (ordinal: number) => controlPlaneMachineName(pool.name, ordinal);
  const client = await openEtcd({ ...values, dialPod: op.seed.dialPod, podName }, op.pki, op.deps.now());
  const replacement = new Replacement(op, wantedOfMachines(op));
  const drained = new Set<number>();
  try {
    for (;;) {
      signal.throwIfAborted();
      const [seen, members] = await Promise.all([machines.observe(op.context(), pool.name), client.observe()]);
      // Its etcd would be awaited until the task's timeout.
      if (isLost(seen, noteIn(op))) throw volumeLost();
      const nodes = shootConnection(op).nodes.list();
      await removeNodesOfMachinesThatLeft(op, pool, seen, nodes);
      await letIn(op, seen.machines, nodes);
      const ordinalsOf = (names: readonly { name: string }[]) => ordinalsNamed(op, pool, names);
      const joined = ordinalsOf(
        nodes.map(({ metadata }) => metadata).filter(({ labels }) => labels?.[JOINED_LABEL] !== undefined),
      );
      const outdated = ordinalsOf(seen.machines.filter((machine) => machine.outdated));
      const lost = lostVolumes(seen.volumes, noteIn(op));
      if (lost.length === 0 && joined.length >= seen.asked && hasAllVolumes(seen.volumes, seen.asked))
        await noteVolumes(op, own, seen.volumes, signal);
      const plan = planControlPlaneSize({
        desired,
        asked: seen.asked,
        peerURLs: values.addresses.etcd.map((_, ordinal) => etcdPeerURL(values, ordinal)),
        members,
        machines: ordinalsOf(seen.machines),
        joined,
        volumes: seen.volumes.map(({ ordinal }) => ordinal),
        lost,
        outdated,
        ready: ordinalsOf(seen.machines.filter(({ ready }) => ready)),
        drained: [...drained],
        closed: ordinalsOf(seen.machines.filter(({ closed }) => closed)),
      });
      replacement.tell({ outdated: outdated.map(podName), asked: seen.asked, desired }, plan);
      if (plan.blocked) throw new Error(`the control plane cannot be brought to ${desired} machines: ${plan.waitFor}`);
      if (!plan.action && !plan.waitFor) return;
      if (plan.action) await act(op, own, client, plan.action, seen, signal);
      if (plan.action?.type === 'drain') drained.add(plan.action.ordinal);
      // Wait after an action too: its effect takes a moment to show.
      await sleep(POLL_MS, signal);
    }
  } finally {
    replacement.end();
    await client.close();
  }
}

function askFor(op: Operation, own: SeedMachines, machines: number): Promise<void> {
  op.deps.recordEvent(op.shoot, 'Normal', 'ControlPlaneResized', `the control plane gets ${machines} machines`);
  return applyControlPlaneMachines(op, own, machines);
}

async function act(
  op: Operation,
  own: SeedMachines,
  client: EtcdClient,
  action: ControlPlaneSizeAction,
  seen: ControlPlaneMachinesSeen,
  signal: AbortSignal,
): Promise<void> {
  const { volumes } = seen;
  const { machines, pool } = own;
  const name = (ordinal: number) => controlPlaneMachineName(pool.name, ordinal);
  switch (action.type) {
    case 'ask-for':
      return askFor(op, own, action.machines);
    case 'transfer-leadership':
      return client.transferLeadership(action.from, action.to);
    case 'remove-member':
      op.deps.recordEvent(
        op.shoot,
        'Normal',
        'EtcdMemberRemoved',
        `the operator removes ${name(action.ordinal)} from etcd`,
      );
      await client.remove(action.id);
      return action.thenAskFor === undefined ? undefined : askFor(op, own, action.thenAskFor);
    case 'remove-node':
      return shootConnection(op).deleteNode(name(action.ordinal));
    case 'forget-volume':
      return noteVolumes(
        op,
        own,
        volumes.filter(({ ordinal }) => ordinal !== action.ordinal),
        signal,
      );
    case 'remove-volume':
      return machines.removeVolume(op.context(), pool.name, action.ordinal);
    case 'drain':
      return drainOf(op, seen.machines, name(action.ordinal), signal);
    case 'close':
      return machines.close(op.context(), pool.name, action.ordinal);
    case 'replace':
      if (seen.machines.some((machine) => machine.name === name(action.ordinal) && machine.phase !== 'Terminating'))
        op.deps.recordEvent(
          op.shoot,
          'Normal',
          'ControlPlaneMachineReplaced',
          `${name(action.ordinal)} is created again, with ${wantedOfMachines(op)}`,
        );
      return machines.replace(op.context(), pool.name, action.ordinal);
  }
}

/** Deletes Nodes of removed machines: without a cloud nobody else does. */
async function removeNodesOfMachinesThatLeft(
  op: Operation,
  pool: Pool,
  seen: ControlPlaneMachinesSeen,
  nodes: readonly Node[],
): Promise<void> {
  const kept = new Set([
    ...seen.machines.map(({ nodeName }) => nodeName),
    ...Array.from({ length: seen.asked }, (_, ordinal) => controlPlaneMachineName(pool.name, ordinal)),
  ]);
  for (const { metadata } of nodes) {
    if (metadata.labels?.[LABELS.pool] === pool.name && !kept.has(metadata.name))
      await shootConnection(op).deleteNode(metadata.name);
  }
}

/** Ordinals of these machines. */
const ordinalsNamed = (op: Operation, pool: Pool, named: readonly { name: string }[]): number[] =>
  op.values.addresses.etcd
    .map((_, ordinal) => ordinal)
    .filter((ordinal) => named.some(({ name }) => name === controlPlaneMachineName(pool.name, ordinal)));
