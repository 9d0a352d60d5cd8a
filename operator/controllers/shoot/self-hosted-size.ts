import { dump } from 'js-yaml';
import type { ControlPlaneMachinesSeen } from '../../../providers/contract.ts';
import { LABELS } from '../../api/group.ts';
import { controlPlaneMachineName } from '../../api/names.ts';
import { sleep } from '../../kube/clock.ts';
import type { Node } from '../../kube/resources.ts';
import { type ControlPlaneSizeAction, planControlPlaneSize } from '../../shoot/control-plane-size.ts';
import { type Dial, EtcdClient } from '../../shoot/etcd-client.ts';
import { kubeadmAuthorities, kubeadmInit, kubeadmJoin } from '../../shoot/kubeadm.ts';
import { issueEtcdOperatorCertificate, keyPair } from '../../shoot/pki.ts';
import { etcdClientURL, etcdPeerURL } from '../../shoot/values.ts';
import { inside } from './inside-tasks.ts';
import type { Operation } from './operation.ts';
import { controlPlaneOf } from './self-hosted.ts';

/** ConfigMap in the shoot's namespace in the seed: is there once the API server has served, for ever. */
export const INITIALISED = 'control-plane-initialised';
/** How often members are asked again while one of them joins or leaves; etcd has no watch for its members. */
const POLL_MS = 500;
/** kubeadm's last mark on a machine that has become part of the control plane. */
const JOINED_LABEL = 'node-role.kubernetes.io/control-plane';

/** Makes as many machines be as there are; the first one if there is none. `asked`: another number. */
export async function applyControlPlaneMachines(op: Operation, asked?: number): Promise<void> {
  const { pki, seed, values } = op;
  const { machines, pool } = controlPlaneOf(op);
  const context = op.context();
  const count = asked ?? Math.max(1, (await machines.observe(context, pool.name)).asked);
  await machines.reconcile(
    context,
    { ...pool, count },
    {
      authorities: kubeadmAuthorities(pki),
      init: kubeadmInit(values).map(document).join('---\n'),
      join: document(kubeadmJoin()),
      addresses: values.addresses.etcd,
      mayInitialise: seed.configMaps.get(`${values.namespace}/${INITIALISED}`) === undefined,
    },
  );
}

const document = (object: object): string => dump(object, { lineWidth: -1, noRefs: true });

/** Takes the control plane from the machines it has to those it should have, one safe step at a time; see planControlPlaneSize. */
export async function reconcileControlPlaneSize(op: Operation, signal: AbortSignal): Promise<void> {
  const { state, values } = op;
  const desired = values.replicas;
  if (state.etcdSettled === desired) return;
  const { machines, pool } = controlPlaneOf(op);
  const certificate = await issueEtcdOperatorCertificate(op.pki, op.world.now());
  const urls = values.addresses.etcd.map((_, ordinal) => etcdClientURL(values, ordinal));
  const client = new EtcdClient(urls, { ca: keyPair(op.pki, 'ca-etcd').cert, ...certificate }, dialMachine(op));
  try {
    for (;;) {
      signal.throwIfAborted();
      const [seen, members] = await Promise.all([machines.observe(op.context(), pool.name), client.observe()]);
      const nodes = inside(op).nodes.list();
      await removeNodesOfMachinesThatLeft(op, seen, nodes);
      const plan = planControlPlaneSize({
        desired,
        asked: seen.asked,
        peerURLs: values.addresses.etcd.map((_, ordinal) => etcdPeerURL(values, ordinal)),
        members,
        machines: ordinalsOf(
          op,
          seen.machines.map(({ name }) => name),
        ),
        joined: ordinalsOf(
          op,
          nodes.filter((node) => node.metadata.labels?.[JOINED_LABEL] !== undefined).map((node) => node.metadata.name),
        ),
        data: seen.data,
      });
      if (plan.blocked) throw new Error(`the control plane cannot be brought to ${desired} machines: ${plan.waitFor}`);
      if (!plan.action && !plan.waitFor) break;
      if (plan.action) await act(op, client, plan.action);
      // A volume takes a moment to go, too.
      if (!plan.action || plan.action.type === 'remove-data') await sleep(POLL_MS, signal);
    }
    state.etcdSettled = desired;
  } finally {
    await client.close();
  }
}

async function act(op: Operation, client: EtcdClient, action: ControlPlaneSizeAction): Promise<void> {
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
    case 'remove-data':
      return machines.removeData(op.context(), pool.name, action.ordinal);
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

/** The way to a machine's address, where that leads nowhere from here. */
function dialMachine(op: Operation): Dial | undefined {
  const { seed, values } = op;
  const { dialPod } = seed;
  if (!dialPod || (values.exposure ?? 'ClusterIP') === 'ClusterIP') return undefined;
  const { pool } = controlPlaneOf(op);
  return (host, port) =>
    dialPod(values.namespace, controlPlaneMachineName(pool.name, values.addresses.etcd.indexOf(host)), port);
}
