import { isDeepStrictEqual } from 'node:util';
import { CoppiceError, errorText } from '../../api/errors.ts';
import { KUBECONFIG_KEY } from '../../api/names.ts';
import { isAttached, type WorkerCluster } from '../../api/workercluster.ts';
import { AttachedConnection, failureText, LacksRight, whoIs } from '../../clusters/attached-connection.ts';
import { KubeClient } from '../../kube/client.ts';
import { KubeApiError } from '../../kube/errors.ts';
import { outsideOnly, platformAddresses } from '../../kube/http/address-guard.ts';
import { TENANT_LIMITS } from '../../kube/http/answer-limits.ts';
import { Informer } from '../../kube/informer.ts';
import { type Connection, parseUntrustedKubeconfig } from '../../kube/kubeconfig.ts';
import { decodeSecret, keyOf, SECRETS, type Secret } from '../../kube/resources.ts';
import { retryDelayMs } from '../backoff.ts';
import { isHeld } from '../finalizer.ts';
import { spreadInterval } from '../spread.ts';
import { Claims } from './claims.ts';
import type { AttachedDependencies } from './dependencies.ts';
import type { AttachedFacts, AttachedRefusal } from './facts.ts';

/** Longest status.endpoint. */
const LONGEST_URL = 2048;

/** Parses a kubeconfig. @throws Refused when a field is harmful or invalid */
function connectionIn(text: string): Connection {
  try {
    const connection = parseUntrustedKubeconfig(text);
    if (connection.server.length > LONGEST_URL) throw new Error('the kubeconfig is refused: its server is too long');
    const { username, password } = new URL(connection.server);
    // The server's URL appears in the cluster's status.
    if (username || password) throw new Error('the kubeconfig is refused: its server has a user or a password in it');
    return connection;
  } catch (error) {
    throw new Refused('KubeconfigRefused', error instanceof CoppiceError ? errorText(error) : failureText(error));
  }
}

const NOT_READY = 'ERR_RETRYABLE_INFRA_DEPENDENCIES';

/** Refusal after the connection ended, until the next check. */
const LINE_ENDED: AttachedRefusal = {
  reason: 'NotReachable',
  message: 'the connection to the API server has ended',
  code: NOT_READY,
};

const notAnswering = ({ server, failure }: AttachedConnection): string =>
  `${server} does not answer${failure ? `: ${failure}` : ''}`;

class Refused extends Error {
  readonly refusal: AttachedRefusal;

  constructor(
    reason: AttachedRefusal['reason'],
    message: string,
    code: AttachedRefusal['code'] = 'ERR_CONFIGURATION_PROBLEM',
  ) {
    super(message);
    this.refusal = { reason, message, code };
  }
}

/** Refusal for the error of a check. */
function refusalOf(error: unknown): AttachedRefusal {
  if (error instanceof Refused) return error.refusal;
  if (error instanceof LacksRight)
    return { reason: 'Forbidden', message: error.message, code: 'ERR_INFRA_UNAUTHORIZED' };
  if (error instanceof KubeApiError && error.isUnauthorized)
    return { reason: 'Unauthorized', message: failureText(error), code: 'ERR_INFRA_UNAUTHENTICATED' };
  if (error instanceof CoppiceError && !error.code.includes('INFRA'))
    return { reason: 'KubeconfigRefused', message: errorText(error), code: error.code };
  return { reason: 'NotReachable', message: failureText(error), code: NOT_READY };
}

/** Memory about an attached cluster. All of it can be lost. */
interface State {
  readonly key: string;
  readonly uid: string;
  /** Informer of its kubeconfig Secret. */
  secret: { readonly name: string; readonly informer: Informer<Secret> } | undefined;
  connection: AttachedConnection | undefined;
  /** Kubeconfig of the connection. */
  source: string | undefined;
  refusal: AttachedRefusal | undefined;
  /** Generation of the object at the last check. */
  generation: number | undefined;
  failures: number;
  /** The object is released: nothing is opened any more. */
  released: boolean;
  /** Whether a check has ended since the start. */
  seen: boolean;
}

const CONNECT_MS = 60_000;
/** Interval of checks of version and identity. */
const LOOK_AGAIN_MS = 10 * 60_000;
/** Interval after a refusal: fixes inside of the cluster or in DNS cause no event. */
const REFUSED_AGAIN_MS = 5 * 60_000;
const GARDEN = 'the garden';

/** Keeps a connection to each attached cluster. Creates and deletes nothing in them. */
export class AttachedController {
  readonly #deps: AttachedDependencies;
  readonly #states = new Map<string, State>();
  readonly #claims: Claims;

  constructor(deps: AttachedDependencies) {
    this.#deps = deps;
    this.#claims = new Claims(deps);
  }

  /** Facts about the cluster with this UID; undefined: not checked yet. */
  facts(key: string, uid: string | undefined): AttachedFacts | undefined {
    const state = this.#states.get(key);
    if (!state?.seen || state.released || state.uid !== uid) return undefined;
    const receipt = this.#claims.receiptOf(key, state.uid);
    const { connection } = state;
    return {
      generation: state.generation,
      refusal: state.refusal ?? (connection ? undefined : LINE_ENDED),
      ...(receipt && { identity: receipt.identity }),
      ...(connection && { version: connection.version, server: connection.server }),
      ...(connection && { inside: { nodes: connection.nodes.list(), pods: connection.pods.list() } }),
    };
  }

  /** Releases a cluster: closes the connection and deletes its receipt. Nothing is opened for this object again. */
  async release(key: string, uid: string, signal: AbortSignal): Promise<void> {
    const state = this.#stateOf(key, uid);
    state.released = true;
    await this.#close(state);
    await this.#deps.receipts.remove(key, signal);
    this.#freed();
  }

  async reconcile(key: string, signal: AbortSignal): Promise<{ requeueAfterMs: number } | undefined> {
    const deps = this.#deps;
    const cluster = deps.clusters.get(key);
    if (!cluster || !isAttached(cluster)) {
      await this.#forget(key, signal);
      return undefined;
    }
    const { uid = '' } = cluster.metadata;
    const earlier = deps.receipts.get(key);
    // Receipt of a force-deleted object of this name.
    if (earlier && earlier.cluster.uid !== uid) await deps.receipts.remove(key, signal);
    const state = this.#stateOf(key, uid);
    // The finalizer first: without it a deletion would not wait for the hubs.
    if (state.released || !isHeld(cluster)) return undefined;
    const refusal = await this.#look(cluster, state, signal);
    signal.throwIfAborted();
    const { generation } = cluster.metadata;
    const before = [state.seen, state.generation, state.refusal?.reason, state.refusal?.message];
    const isNews = !isDeepStrictEqual(before, [true, generation, refusal?.reason, refusal?.message]);
    state.refusal = refusal;
    state.generation = generation;
    state.seen = true;
    if (isNews) deps.changed(key);
    if (!refusal) {
      state.failures = 0;
      return { requeueAfterMs: spreadInterval(LOOK_AGAIN_MS, uid) };
    }
    state.failures++;
    return {
      requeueAfterMs:
        retryDelayMs(refusal.code, state.failures, deps.random()) ?? spreadInterval(REFUSED_AGAIN_MS, uid),
    };
  }

  async stop(): Promise<void> {
    const states = [...this.#states.values()];
    this.#states.clear();
    await Promise.all(states.map((state) => this.#close(state)));
  }

  /** Opens or checks the connection. @returns why the cluster cannot be used */
  async #look(cluster: WorkerCluster, state: State, signal: AbortSignal): Promise<AttachedRefusal | undefined> {
    let source: string;
    try {
      source = await this.#source(cluster, state, signal);
    } catch (error) {
      signal.throwIfAborted();
      await this.#disconnect(state);
      return refusalOf(error);
    }
    const { connection } = state;
    if (connection && state.source === source) {
      if (!connection.answers) return { reason: 'NotReachable', message: notAnswering(connection), code: NOT_READY };
      connection.doubt();
      return undefined;
    }
    try {
      return await this.#open(cluster, state, source, AbortSignal.any([signal, AbortSignal.timeout(CONNECT_MS)]));
    } catch (error) {
      signal.throwIfAborted();
      return refusalOf(error);
    } finally {
      // A replaced kubeconfig revokes the old one, even if the new one is invalid.
      if (state.connection === connection) await this.#disconnect(state);
      else await connection?.stop();
    }
  }

  /** Text of the kubeconfig; GARDEN for the garden itself. */
  async #source({ metadata, spec }: WorkerCluster, state: State, signal: AbortSignal): Promise<string> {
    const { namespace = '' } = metadata;
    const { kubeconfigSecretRef: ref, garden } = spec.attached ?? {};
    if (garden) {
      if (namespace === this.#deps.namespace) return GARDEN;
      throw new Refused('PlatformCluster', `the garden itself is attached in namespace ${this.#deps.namespace} only`);
    }
    const { name = '', key = KUBECONFIG_KEY } = ref ?? {};
    const secret = await this.#secret(namespace, name, state, signal);
    const text = decodeSecret(secret?.data)[key];
    if (text) return text;
    const what = secret ? `has no key ${key}` : 'does not exist';
    throw new Refused(
      'KubeconfigMissing',
      `Secret ${namespace}/${name} ${what}: put the kubeconfig of the cluster into its key ${key}`,
      'ERR_RETRYABLE_CONFIGURATION_PROBLEM',
    );
  }

  async #secret(namespace: string, name: string, state: State, signal: AbortSignal): Promise<Secret | undefined> {
    if (state.secret?.name !== name) {
      await state.secret?.informer.stop();
      const { garden, log } = this.#deps;
      const informer = new Informer<Secret>(garden, SECRETS, {
        log,
        namespace,
        fieldSelector: `metadata.name=${name}`,
      });
      state.secret = { name, informer };
      informer.onChange(() => this.#deps.enqueue(state.key));
      informer.start();
    }
    const { informer } = state.secret;
    await informer.whenSynced(signal);
    return informer.get(`${namespace}/${name}`);
  }

  async #open(
    cluster: WorkerCluster,
    state: State,
    source: string,
    signal: AbortSignal,
  ): Promise<AttachedRefusal | undefined> {
    const deps = this.#deps;
    const key = keyOf(cluster);
    const shared = source === GARDEN;
    const client = shared ? deps.garden : await this.#client(cluster, source);
    let connection: AttachedConnection | undefined;
    let isOpen = false;
    try {
      const seen = await whoIs(client, signal);
      const refusal = await this.#claims.claim(cluster, client, seen, signal);
      if (refusal) return refusal;
      const opened: AttachedConnection = new AttachedConnection(
        { client, seen, tenant: cluster.metadata.namespace ?? '', name: cluster.metadata.name, shared, log: deps.log },
        {
          changed: () => deps.changed(key, 'inside'),
          answers: () => this.#connectionChanged(key, opened),
          replaced: () => this.#connectionChanged(key, opened),
        },
      );
      connection = opened;
      opened.onStop(() => {
        if (state.connection === opened) state.connection = undefined;
      });
      await opened.start(signal);
      if (state.released || this.#states.get(key) !== state) return undefined;
      state.connection = opened;
      state.source = source;
      isOpen = true;
      deps.openClusters.add(key, opened);
      return undefined;
    } finally {
      if (!isOpen && connection) await connection.stop();
      else if (!isOpen && !shared) await client.close();
    }
  }

  /** Tenants must not make the operator connect to addresses of the platform. */
  async #client({ metadata }: WorkerCluster, text: string): Promise<KubeClient> {
    const connection = connectionIn(text);
    const { namespace, allowed } = this.#deps;
    if (metadata.namespace === namespace) return new KubeClient({ ...connection, limits: TENANT_LIMITS });
    const own = await platformAddresses(this.#deps.platform().servers, connection.server);
    return new KubeClient({ ...connection, limits: TENANT_LIMITS, admit: outsideOnly(allowed, own) });
  }

  #connectionChanged(key: string, connection: AttachedConnection): void {
    const state = this.#states.get(key);
    if (state && (state.connection === undefined || state.connection === connection)) this.#deps.enqueue(key);
  }

  /** Requeue clusters that were refused as duplicates of this one. */
  #freed(): void {
    for (const [key, { refusal }] of this.#states) if (refusal?.reason === 'SameCluster') this.#deps.enqueue(key);
  }

  #stateOf(key: string, uid: string): State {
    const known = this.#states.get(key);
    if (known?.uid === uid) return known;
    if (known) void this.#close(known);
    const state: State = {
      key,
      uid,
      secret: undefined,
      connection: undefined,
      source: undefined,
      refusal: undefined,
      generation: undefined,
      failures: 0,
      released: false,
      seen: false,
    };
    this.#states.set(key, state);
    return state;
  }

  async #forget(key: string, signal: AbortSignal): Promise<void> {
    const state = this.#states.get(key);
    this.#states.delete(key);
    if (state) await this.#close(state);
    if (this.#deps.receipts.get(key)) await this.#deps.receipts.remove(key, signal);
    this.#freed();
  }

  async #close(state: State): Promise<void> {
    await Promise.all([this.#disconnect(state), state.secret?.informer.stop()]);
    state.secret = undefined;
  }

  async #disconnect(state: State): Promise<void> {
    const { connection } = state;
    state.connection = undefined;
    state.source = undefined;
    await connection?.stop();
  }
}
