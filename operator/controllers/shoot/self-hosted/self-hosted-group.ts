import { dump } from 'js-yaml';
import {
  type ControlPlaneGroup,
  type ControlPlaneGroupBootstrap,
  type ControlPlaneGroupSeen,
  DISCOVERY_FILE,
  type Pool,
} from '../../../../providers/contract.ts';
import { CoppiceError } from '../../../api/errors.ts';
import { LABELS } from '../../../api/group.ts';
import type { EtcdClient } from '../../../etcd/etcd-client.ts';
import { sleep } from '../../../kube/clock.ts';
import { type KubeObject, type Node, SECRETS } from '../../../kube/resources.ts';
import { kubeadmAuthorities, kubeadmInit, kubeadmJoinByToken } from '../../../shoot/kubeadm.ts';
import { certificateKeyFor, joinObjects, KUBEADM_CERTS } from '../../../shoot/kubeadm-certs.ts';
import { controlPlaneLabels } from '../../../shoot/values.ts';
import { openStackedEtcd } from '../etcd-access.ts';
import { inside } from '../inside-tasks.ts';
import { TOKENS_SECRET, tokenOf } from '../machines/bootstrap-tokens.ts';
import type { Operation } from '../operation.ts';
import { LossWatch } from './control-plane-group-seen.ts';
import { INITIALISED, noteIn, POOL_NOTED } from './self-hosted.ts';
import { bringGroupToSize, LOOK_MS, looksLost } from './self-hosted-group-size.ts';
import { JOINED_LABEL, wanting } from './self-hosted-status.ts';

/** In the note: the machines that etcd needs a majority of, by the names of their nodes. */
const MEMBERS_NOTED = 'members';

/** The machines of the control plane and who makes them in a cloud. Throws for a shoot that has none there. */
export function controlPlaneGroupOf({ controlPlanePool, provider }: Operation): {
  pool: Pool;
  group: ControlPlaneGroup;
} {
  if (!controlPlanePool || !provider.controlPlaneGroup)
    throw new Error('the control plane of this shoot is not on machines of a cloud');
  return { pool: controlPlanePool, group: provider.controlPlaneGroup };
}

/** Makes the endpoint, which all else names. */
export async function reserveEndpoint(op: Operation): Promise<void> {
  const { pool, group } = controlPlaneGroupOf(op);
  const endpoint = await group.endpoint(op.context(), pool);
  op.values = { ...op.values, addresses: { apiServer: endpoint.host, etcd: [] }, endpoint };
}

/** Makes the one machine that begins the cluster. From the note on it makes none: see reconcileControlPlaneGroup. */
export async function beginControlPlane(op: Operation): Promise<void> {
  if (noteIn(op)) return;
  const { pool, group } = controlPlaneGroupOf(op);
  const first = { begin: kubeadmAuthorities(op.pki) };
  await group.reconcile(op.context(), { ...pool, count: 1 }, { init: initDocument(op), first });
}

/** Rejects as soon as the state of the cluster is seen to be lost, or the cloud gives no machine; otherwise when it is aborted. */
export async function untilGroupLost(op: Operation, signal: AbortSignal): Promise<never> {
  const { pool, group } = controlPlaneGroupOf(op);
  const watch = new LossWatch();
  for (;;) {
    // First of all: mostly the API server answers at once, and nothing need be asked.
    await sleep(LOOK_MS, signal);
    signal.throwIfAborted();
    const seen = await group.observe(op.context(), pool.name).catch((error: unknown) => {
      // A cloud that does not tell is nothing against an API server that may answer.
      op.world.log.warn(
        { err: error, shoot: op.shoot.metadata.name },
        'the machines of the control plane cannot be seen',
      );
    });
    if (seen) throwIfHopeless(op, seen, watch);
  }
}

function throwIfHopeless(op: Operation, seen: ControlPlaneGroupSeen, watch: LossWatch): void {
  looksLost(membersNoted(op), seen, watch, op.world.now());
  if (noteIn(op) || seen.failure === undefined) return;
  const message = `the control plane does not get its machine: ${seen.failure}`;
  throw new CoppiceError('ERR_RETRYABLE_INFRA_DEPENDENCIES', message);
}

const membersNoted = (op: Operation): string[] =>
  ((noteIn(op)?.data ?? {}) as Record<string, string>)[MEMBERS_NOTED]?.split(',').filter(Boolean) ?? [];

/**
 * Notes that the cluster has begun, and on which machine its state is. Written before anybody is given a way in, and never taken back: no
 * machine may begin the cluster anew from here on.
 */
export async function noteBegun(op: Operation, signal: AbortSignal): Promise<void> {
  if (noteIn(op)) return;
  const { pool, group } = controlPlaneGroupOf(op);
  const { machines } = await group.observe(op.context(), pool.name);
  const alive = machines.filter(({ phase }) => phase !== 'Terminating').map(({ nodeName }) => nodeName);
  if (alive.length !== 1) throw new Error(`the control plane begins on one machine, and there are ${alive.length}`);
  await writeNote(op, alive, signal);
}

async function writeNote(op: Operation, members: readonly string[], signal: AbortSignal): Promise<void> {
  const { seed, values } = op;
  const note: KubeObject = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: INITIALISED, namespace: values.namespace, labels: controlPlaneLabels(values) },
    data: { [POOL_NOTED]: controlPlaneGroupOf(op).pool.name, [MEMBERS_NOTED]: members.join(',') },
  };
  const { object, changed } = await seed.applier.apply(note, signal);
  if (changed) seed.configMaps.absorb(object);
}

/** What of the control plane is not there or not ready, in words. */
export function groupNotReady(op: Operation): string[] {
  const { pods } = inside(op);
  const nodes = nodesOf(op);
  const missing = op.values.replicas - nodes.length;
  return [
    ...(missing > 0 ? [`${missing} machines`] : []),
    ...nodes.flatMap(({ metadata }) => wanting(metadata.name, () => true, nodes, pods.list())),
  ];
}

const nodesOf = (op: Operation): Node[] => {
  const { pool } = controlPlaneGroupOf(op);
  return inside(op)
    .nodes.list()
    .filter(({ metadata }) => metadata.labels?.[LABELS.pool] === pool.name);
};

/** Takes the control plane from the machines it has to those it should have, one safe step at a time; see planControlPlaneGroup. */
export async function reconcileControlPlaneGroup(op: Operation, signal: AbortSignal): Promise<void> {
  const { state, values } = op;
  const desired = values.replicas;
  // Who mends wants to know of machines that are too many, too.
  if (!op.mend && state.etcdSettled === desired && groupNotReady(op).length === 0) return;
  const { pool, group } = controlPlaneGroupOf(op);
  const teller = new Teller(op, signal);
  const line = new EtcdLine(op);
  try {
    await bringGroupToSize(
      {
        desired,
        now: () => op.world.now(),
        observe: () => group.observe(op.context(), pool.name),
        nodes: () => nodesOf(op),
        etcd: (seen) => line.to(seen),
        noted: () => membersNoted(op),
        note: (voters) => writeNote(op, voters, signal),
        tell: (machines) => teller.tell(machines),
        end: (machines) => group.end(op.context(), pool.name, machines),
        removeNode: (name) => inside(op).deleteNode(name),
        say: (reason, message) => op.world.record(op.shoot, 'Normal', reason, message),
        sleep,
      },
      signal,
    );
    await teller.silence();
    state.etcdSettled = desired;
  } finally {
    await line.close();
  }
}

/** Tells machines to come how they join, and has the cluster ready for them. */
class Teller {
  readonly #op: Operation;
  readonly #signal: AbortSignal;
  #prepared: string | undefined;

  constructor(op: Operation, signal: AbortSignal) {
    this.#op = op;
    this.#signal = signal;
  }

  async tell(machines: number): Promise<void> {
    const op = this.#op;
    const { pool, group } = controlPlaneGroupOf(op);
    const context = op.context();
    const discovery = await context.bootstrapKubeconfig(pool.name);
    const token = tokenOf(op.seed.secrets.get(`${op.values.namespace}/${TOKENS_SECRET}`), pool.name);
    if (!token) throw new Error(`pool ${pool.name} has no token to join with`);
    const key = certificateKeyFor(op.pki, token.text);
    const hasJoined = nodesOf(op).filter(({ metadata }) => metadata.labels?.[JOINED_LABEL] !== undefined).length;
    if (hasJoined < machines && this.#prepared !== key) {
      await inside(op).applyAll(joinObjects(op.pki, key), this.#signal);
      this.#prepared = key;
    }
    const bootstrap: ControlPlaneGroupBootstrap = {
      init: initDocument(op),
      first: { join: document(kubeadmJoinByToken(DISCOVERY_FILE, key)), discovery },
    };
    await group.reconcile(context, { ...pool, count: machines }, bootstrap);
  }

  /** All have joined: nobody needs the authorities' keys any more. */
  async silence(): Promise<void> {
    const { client } = inside(this.#op);
    const name = KUBEADM_CERTS;
    if (await client.getOrUndefined(SECRETS, name, 'kube-system')) await client.delete(SECRETS, name, 'kube-system');
  }
}

/** The way to etcd, which leads through the machines that have joined: opened anew when these are others. */
class EtcdLine {
  readonly #op: Operation;
  #client: EtcdClient | undefined;
  #to = '';

  constructor(op: Operation) {
    this.#op = op;
  }

  async to({ machines }: ControlPlaneGroupSeen): Promise<EtcdClient> {
    const op = this.#op;
    const nodes = nodesOf(op).filter(({ metadata }) => metadata.labels?.[JOINED_LABEL] !== undefined);
    const here = nodes.filter(({ metadata }) => machines.some(({ nodeName }) => nodeName === metadata.name));
    const places = here.flatMap((node) => {
      const address = node.status?.addresses?.find(({ type }) => type === 'InternalIP')?.address;
      return address === undefined ? [] : [{ node: node.metadata.name, address }];
    });
    const to = JSON.stringify(places);
    if (this.#client && to === this.#to) return this.#client;
    await this.#client?.close();
    this.#client = await openStackedEtcd(op.values, places, op.pki, op.world.now());
    this.#to = to;
    return this.#client;
  }

  async close(): Promise<void> {
    await this.#client?.close();
  }
}

const initDocument = (op: Operation): string => kubeadmInit(op.values, 'cloud').map(document).join('---\n');

const document = (object: object): string => dump(object, { lineWidth: -1, noRefs: true });
