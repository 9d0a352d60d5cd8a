import {
  type ControlPlaneGroup,
  type ControlPlaneGroupBootstrap,
  type ControlPlaneGroupSeen,
  DISCOVERY_FILE,
  type Pool,
} from '../../../../providers/contract.ts';
import { LABELS } from '../../../api/group.ts';
import type { EtcdClient } from '../../../etcd/etcd-client.ts';
import { sleep } from '../../../kube/clock.ts';
import { type Node, SECRETS } from '../../../kube/resources.ts';
import { kubeadmConfig, kubeadmInit, kubeadmJoinByToken, kubeadmYAML } from '../../../shoot/kubeadm.ts';
import { certificateKeyFor, joinObjects, KUBEADM_CERTS } from '../../../shoot/kubeadm-certs.ts';
import { openStackedEtcd } from '../etcd-access.ts';
import { TOKENS_SECRET, tokenOf } from '../machines/bootstrap-tokens.ts';
import type { Operation } from '../operation.ts';
import { shootConnection } from '../tasks/apply-inside.ts';
import { noteIn, writeNote } from './self-hosted.ts';
import { bringGroupToSize } from './self-hosted-group-size.ts';
import { letIn, makeWay, Replacement, replacedIn, wantedInCloud } from './self-hosted-replace.ts';
import { JOINED_LABEL } from './self-hosted-status.ts';

/** Key in the note: node names of the machines that etcd needs a majority of. */
const MEMBERS_NOTED = 'members';

/** Control plane machines in a cloud with their provider. */
export interface CloudMachines {
  readonly pool: Pool;
  readonly group: ControlPlaneGroup;
}

export const membersNoted = (op: Operation): string[] =>
  ((noteIn(op)?.data ?? {}) as Record<string, string>)[MEMBERS_NOTED]?.split(',').filter(Boolean) ?? [];

/** Records that the cluster was initialised, and which machines hold its state. */
export async function noteMembers(
  op: Operation,
  pool: Pool,
  members: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  await writeNote(op, pool, { [MEMBERS_NOTED]: members.join(',') }, signal);
}

/** kubeadm documents for the machine that initialises the cluster. */
export const initDocuments = (op: Operation): string => kubeadmYAML(...kubeadmInit(op.values, op.pki, 'cloud'));

const nodesOf = (op: Operation, pool: Pool): Node[] => ofPool(shootConnection(op).nodes.list(), pool);

/** Nodes of the pool. Pure. */
export const ofPool = (nodes: readonly Node[], pool: Pool): Node[] =>
  nodes.filter(({ metadata }) => metadata.labels?.[LABELS.pool] === pool.name);

/** Changes the control plane's machines to the desired ones, one safe step at a time; see planControlPlaneGroup. */
export async function reconcileControlPlaneGroup(
  op: Operation,
  own: CloudMachines,
  signal: AbortSignal,
): Promise<void> {
  const { pool, group } = own;
  const join = new MachineJoin(op, own, signal);
  const stackedEtcd = new StackedEtcdConnection(op, pool);
  const wanted = wantedInCloud(op, nodesOf(op, pool));
  const replacement = new Replacement(op, wanted);
  try {
    await bringGroupToSize(
      {
        desired: op.values.replicas,
        version: op.values.version,
        now: () => op.deps.now(),
        observe: () => group.observe(op.context(), pool.name),
        nodes: () => nodesOf(op, pool),
        etcd: (seen) => stackedEtcd.to(seen),
        noted: () => membersNoted(op),
        note: (voters) => noteMembers(op, pool, voters, signal),
        tell: (machines, there, joined) => join.prepare(machines, there, joined),
        drain: (machine) => makeWay(op, machine, wanted, signal),
        letIn: (machines) => letIn(op, machines, nodesOf(op, pool)),
        follow: (observed, plan) => replacement.tell(replacedIn(observed), plan),
        end: (machines) => group.end(op.context(), pool.name, machines),
        removeNode: (name) => shootConnection(op).deleteNode(name),
        say: (reason, message) => op.deps.recordEvent(op.shoot, 'Normal', reason, message),
        sleep,
      },
      signal,
    );
    await join.removeKeys();
  } finally {
    replacement.end();
    await stackedEtcd.close();
  }
}

/**
 * Prepares joining of new machines: a token, the cluster's configuration, and the CA keys in a Secret of the cluster,
 * as kubeadm does.
 */
export class MachineJoin {
  readonly #op: Operation;
  readonly #own: CloudMachines;
  readonly #signal: AbortSignal;
  #prepared: string | undefined;

  constructor(op: Operation, own: CloudMachines, signal: AbortSignal) {
    this.#op = op;
    this.#own = own;
    this.#signal = signal;
  }

  /**
   * @param there existing machines among the requested ones
   * @param joined number that has joined
   */
  async prepare(machines: number, there: number, joined: number): Promise<void> {
    const op = this.#op;
    const { pool, group } = this.#own;
    const context = op.context();
    // A machine to be made needs a fresh token, although the node of one that has just ended stays Ready for a while.
    // An existing machine already has its token, and could not read the keys with another.
    const tokensFor = there < machines ? nodesOf(op, pool).length + 1 : 0;
    const discovery = await context.bootstrapKubeconfig(pool.name, tokensFor);
    const token = tokenOf(op.seed.secrets.get(`${op.values.namespace}/${TOKENS_SECRET}`), pool.name);
    if (!token) throw new Error(`pool ${pool.name} has no token to join with`);
    const key = certificateKeyFor(op.pki, token.text);
    if (joined < machines && this.#prepared !== key) {
      // After an upgrade: kubeadm on the new machine uses the stored configuration.
      const config = kubeadmConfig(op.values, op.pki, 'cloud');
      await shootConnection(op).applyAll([config, ...joinObjects(op.pki, key)], this.#signal);
      this.#prepared = key;
    }
    const bootstrap: ControlPlaneGroupBootstrap = {
      init: initDocuments(op),
      first: { join: kubeadmYAML(kubeadmJoinByToken(DISCOVERY_FILE, key)), discovery },
    };
    await group.reconcile(context, { ...pool, count: machines }, bootstrap);
  }

  /** Deletes the CA keys from the cluster once all machines joined. */
  async removeKeys(): Promise<void> {
    const { client } = shootConnection(this.#op);
    const name = KUBEADM_CERTS;
    if (await client.getOrUndefined(SECRETS, name, 'kube-system')) await client.delete(SECRETS, name, 'kube-system');
  }
}

/** Connection to etcd through the joined machines: reopened when these change. */
class StackedEtcdConnection {
  readonly #op: Operation;
  readonly #pool: Pool;
  #client: EtcdClient | undefined;
  #to = '';

  constructor(op: Operation, pool: Pool) {
    this.#op = op;
    this.#pool = pool;
  }

  async to({ machines }: ControlPlaneGroupSeen): Promise<EtcdClient> {
    const op = this.#op;
    const nodes = nodesOf(op, this.#pool).filter(({ metadata }) => metadata.labels?.[JOINED_LABEL] !== undefined);
    const here = nodes.filter(({ metadata }) => machines.some(({ nodeName }) => nodeName === metadata.name));
    const places = here.flatMap((node) => {
      const address = node.status?.addresses?.find(({ type }) => type === 'InternalIP')?.address;
      return address === undefined ? [] : [{ node: node.metadata.name, address }];
    });
    const to = JSON.stringify(places);
    if (this.#client && to === this.#to) return this.#client;
    await this.#client?.close();
    this.#client = await openStackedEtcd(op.values, places, op.pki, op.deps.now());
    this.#to = to;
    return this.#client;
  }

  async close(): Promise<void> {
    await this.#client?.close();
  }
}
