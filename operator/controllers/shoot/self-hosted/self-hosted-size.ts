import { dump } from 'js-yaml';
import type { ControlPlaneMachinesSeen } from '../../../../providers/contract.ts';
import { configurationProblem } from '../../../api/errors.ts';
import { LABELS } from '../../../api/group.ts';
import { controlPlaneMachineName } from '../../../api/names.ts';
import type { EtcdClient } from '../../../etcd/etcd-client.ts';
import { sleep } from '../../../kube/clock.ts';
import type { KubeObject, Node } from '../../../kube/resources.ts';
import { type ControlPlaneSizeAction, planControlPlaneSize } from '../../../shoot/control-plane-size.ts';
import { kubeadmAuthorities, kubeadmInit, kubeadmJoin } from '../../../shoot/kubeadm.ts';
import { controlPlaneLabels, etcdPeerURL } from '../../../shoot/values.ts';
import { openEtcd } from '../etcd-access.ts';
import { inside } from '../inside-tasks.ts';
import type { Operation } from '../operation.ts';
import { controlPlaneOf, INITIALISED, noteIn, POOL_NOTED } from './self-hosted.ts';
import { JOINED_LABEL, serves, wanting } from './self-hosted-status.ts';

/** How often members are asked again while one of them joins or leaves; etcd has no watch for its members. */
const POLL_MS = 500;
/** How often it is looked whether there is anything to wait for still; a volume is made anew some time after its machine. */
const LOOK_MS = 3000;

/** Makes as many machines be as there are; the first one if there is none. `asked`: another number. */
export async function applyControlPlaneMachines(op: Operation, asked?: number): Promise<void> {
  const { pki, values } = op;
  const { machines, pool } = controlPlaneOf(op);
  const context = op.context();
  const seen = await machines.observe(context, pool.name);
  const note = noteIn(op);
  if (isLost(seen, note)) throw configurationProblem(LOST);
  const noted = ordinalsNoted(note);
  // A set of machines that somebody took away comes back with as many as there were: fewer would have no majority.
  const count = asked ?? (seen.asked || Math.max(0, ...noted) + 1);
  await machines.reconcile(
    context,
    { ...pool, count },
    {
      authorities: kubeadmAuthorities(pki),
      init: kubeadmInit(values).map(document).join('---\n'),
      join: document(kubeadmJoin()),
      addresses: values.addresses.etcd,
      mayInitialise: note === undefined,
      noted,
    },
  );
}

const LOST =
  'the volume of the only machine of the control plane is lost, and the state of the cluster with it: nothing can bring it back. Delete the cluster, and make it anew';

/** Whether the one volume that had the cluster's state has been replaced by an empty one. */
function isLost({ asked, volumes }: ControlPlaneMachinesSeen, note: KubeObject | undefined): boolean {
  return asked === 1 && lostVolumes(volumes, note).includes(0);
}

/** Rejects as soon as the state of the cluster is seen to be lost; otherwise when it is aborted. To be run while something is waited for. */
export async function untilLost(op: Operation, signal: AbortSignal): Promise<never> {
  const { machines, pool } = controlPlaneOf(op);
  for (;;) {
    if (isLost(await machines.observe(op.context(), pool.name), noteIn(op))) throw configurationProblem(LOST);
    await sleep(LOOK_MS, signal);
    signal.throwIfAborted();
  }
}

/** Whose volume is not the one that was noted. */
function lostVolumes(volumes: ControlPlaneMachinesSeen['volumes'], note: KubeObject | undefined): number[] {
  const noted = (note?.data ?? {}) as Record<string, string>;
  return volumes
    .filter(({ ordinal, uid }) => noted[noteOf(ordinal)] !== undefined && noted[noteOf(ordinal)] !== uid)
    .map(({ ordinal }) => ordinal);
}

/**
 * Notes that the cluster has begun, and on which volumes its state is. Written before anybody is given a way in, and never taken back: from
 * here on there may be something that must not be lost, and no machine without data may begin the cluster anew.
 */
export async function noteInitialised(op: Operation, signal: AbortSignal): Promise<void> {
  const { machines, pool } = controlPlaneOf(op);
  if (noteIn(op)) return;
  const { volumes } = await machines.observe(op.context(), pool.name);
  if (!hasAllVolumes(volumes, 1)) throw new Error('the first machine of the control plane has no volume');
  await writeNote(op, volumes, signal);
}

async function writeNote(
  op: Operation,
  volumes: ControlPlaneMachinesSeen['volumes'],
  signal: AbortSignal,
): Promise<void> {
  const { seed, values } = op;
  const note: KubeObject = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: INITIALISED, namespace: values.namespace, labels: controlPlaneLabels(values) },
    data: {
      [POOL_NOTED]: controlPlaneOf(op).pool.name,
      ...Object.fromEntries(volumes.map(({ ordinal, uid }) => [noteOf(ordinal), uid])),
    },
  };
  const { object, changed } = await seed.applier.apply(note, signal);
  if (!changed) return;
  seed.configMaps.absorb(object);
  // Machines are told of it at once: one that comes back without its data must not join before it was let go of.
  await applyControlPlaneMachines(op);
}

/** Whose volumes are noted. */
const ordinalsNoted = (note: KubeObject | undefined): number[] =>
  Object.keys(note?.data ?? {})
    .flatMap((key) => /^volume-(\d+)$/.exec(key)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);

/** Whether each of so many machines has a volume: one that is about to get a new one has none for a moment. */
const hasAllVolumes = (volumes: ControlPlaneMachinesSeen['volumes'], machines: number): boolean =>
  Array.from({ length: machines }, (_, ordinal) => ordinal).every((ordinal) =>
    volumes.some((volume) => volume.ordinal === ordinal),
  );

const noteOf = (ordinal: number): string => `volume-${ordinal}`;

const document = (object: object): string => dump(object, { lineWidth: -1, noRefs: true });

/** What of the control plane is not there or not ready, in words. */
export function notReady(op: Operation): string[] {
  const { nodes, pods } = inside(op);
  const { pool } = controlPlaneOf(op);
  return Array.from({ length: op.values.replicas }, (_, ordinal) =>
    controlPlaneMachineName(pool.name, ordinal),
  ).flatMap((name) => wanting(name, serves(op), nodes.list(), pods.list()));
}

/** Takes the control plane from the machines it has to those it should have, one safe step at a time; see planControlPlaneSize. */
export async function reconcileControlPlaneSize(op: Operation, signal: AbortSignal): Promise<void> {
  const { state, values } = op;
  const desired = values.replicas;
  const { machines, pool } = controlPlaneOf(op);
  if (state.etcdSettled === desired && notReady(op).length === 0) return;
  const podName = (ordinal: number) => controlPlaneMachineName(pool.name, ordinal);
  const client = await openEtcd({ ...values, dialPod: op.seed.dialPod, podName }, op.pki, op.world.now());
  try {
    for (;;) {
      signal.throwIfAborted();
      const [seen, members] = await Promise.all([machines.observe(op.context(), pool.name), client.observe()]);
      // Its etcd would be waited for until the task is over.
      if (isLost(seen, noteIn(op))) throw configurationProblem(LOST);
      const nodes = inside(op).nodes.list();
      await removeNodesOfMachinesThatLeft(op, seen, nodes);
      const joined = ordinalsOf(
        op,
        nodes.filter((node) => node.metadata.labels?.[JOINED_LABEL] !== undefined).map((node) => node.metadata.name),
      );
      const lost = lostVolumes(seen.volumes, noteIn(op));
      if (lost.length === 0 && joined.length >= seen.asked && hasAllVolumes(seen.volumes, seen.asked))
        await writeNote(op, seen.volumes, signal);
      const plan = planControlPlaneSize({
        desired,
        asked: seen.asked,
        peerURLs: values.addresses.etcd.map((_, ordinal) => etcdPeerURL(values, ordinal)),
        members,
        machines: ordinalsOf(
          op,
          seen.machines.map(({ name }) => name),
        ),
        joined,
        volumes: seen.volumes.map(({ ordinal }) => ordinal),
        lost,
      });
      if (plan.blocked) throw new Error(`the control plane cannot be brought to ${desired} machines: ${plan.waitFor}`);
      if (!plan.action && !plan.waitFor) break;
      if (plan.action) await act(op, client, plan.action, seen, signal);
      // Also after an action: what it has changed takes a moment to be seen.
      await sleep(POLL_MS, signal);
    }
    state.etcdSettled = desired;
  } finally {
    await client.close();
  }
}

async function act(
  op: Operation,
  client: EtcdClient,
  action: ControlPlaneSizeAction,
  { volumes }: ControlPlaneMachinesSeen,
  signal: AbortSignal,
): Promise<void> {
  const { machines, pool } = controlPlaneOf(op);
  const name = (ordinal: number) => controlPlaneMachineName(pool.name, ordinal);
  switch (action.type) {
    case 'ask-for':
      op.world.record(op.shoot, 'Normal', 'ControlPlaneResized', `the control plane gets ${action.machines} machines`);
      return applyControlPlaneMachines(op, action.machines);
    case 'transfer-leadership':
      return client.transferLeadership(action.from, action.to);
    case 'remove-member':
      op.world.record(op.shoot, 'Normal', 'EtcdMemberLeaves', `${name(action.ordinal)} leaves etcd`);
      return client.remove(action.id);
    case 'remove-node':
      return inside(op).deleteNode(name(action.ordinal));
    case 'forget-volume':
      return writeNote(
        op,
        volumes.filter(({ ordinal }) => ordinal !== action.ordinal),
        signal,
      );
    case 'remove-volume':
      return machines.removeVolume(op.context(), pool.name, action.ordinal);
  }
}

/** Without a cloud nobody else does it. */
async function removeNodesOfMachinesThatLeft(op: Operation, seen: ControlPlaneMachinesSeen, nodes: readonly Node[]) {
  const { pool } = controlPlaneOf(op);
  const kept = new Set([
    ...seen.machines.map(({ nodeName }) => nodeName),
    ...Array.from({ length: seen.asked }, (_, ordinal) => controlPlaneMachineName(pool.name, ordinal)),
  ]);
  for (const { metadata } of nodes) {
    if (metadata.labels?.[LABELS.pool] === pool.name && !kept.has(metadata.name))
      await inside(op).deleteNode(metadata.name);
  }
}

/** Which machines these are, by their names. */
const ordinalsOf = (op: Operation, names: readonly string[]): number[] =>
  op.values.addresses.etcd
    .map((_, ordinal) => ordinal)
    .filter((ordinal) => names.includes(controlPlaneMachineName(controlPlaneOf(op).pool.name, ordinal)));
