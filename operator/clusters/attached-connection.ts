import type { KubeClient } from '../kube/client.ts';
import { loopTimeout } from '../kube/clock.ts';
import { KubeApiError } from '../kube/errors.ts';
import { tenantBudget } from '../kube/http/byte-budget.ts';
import { Informer } from '../kube/informer.ts';
import type { Log } from '../kube/log.ts';
import { podRequests } from '../kube/pod-requests.ts';
import { conditionIsTrue, NAMESPACES, NODES, type Node, PODS, type Pod, pathOf } from '../kube/resources.ts';
import { nodeAmounts } from './capacity.ts';
import { ConnectionHealth } from './connection-health.ts';
import { slimNode } from './kept-objects.ts';
import { keptPod } from './kept-pod.ts';
import type { OpenCluster } from './open-clusters.ts';

const ASK_MS = 5_000;
/** A UID has 36 characters; a longer text is invalid and would fill the status. */
const LONGEST_UID = 64;

/** The identity and version that an API server reports. */
export interface SeenCluster {
  /** UID of the namespace kube-system, which lives as long as the cluster. */
  readonly identity: string;
  /** For example 1.36.3; '' where it reports none that can be parsed. */
  readonly version: string;
}

/** Rights that the kubeconfig's identity needs: without them the cluster cannot be observed. */
const NEEDED: readonly [what: string, path: string][] = [
  ['list nodes', pathOf(NODES)],
  ['list pods of all namespaces', pathOf(PODS)],
];

/** A right that the identity of a kubeconfig lacks. */
export class LacksRight extends Error {
  override readonly name = 'LacksRight';
}

/**
 * Reads a cluster's identity and version. @throws LacksRight, KubeApiError (401), KubeUnreachableError, and the error
 * for a refused address
 */
export async function whoIs(client: KubeClient, signal: AbortSignal): Promise<SeenCluster> {
  const ask = (path: string, query = {}) =>
    client.request('GET', path, { query, signal, timeoutMs: ASK_MS, retries: 0 });
  const may = async <T>(what: string, asked: Promise<T>): Promise<T> => {
    try {
      return await asked;
    } catch (error) {
      if (error instanceof KubeApiError && error.isForbidden)
        throw new LacksRight(`the identity of the kubeconfig may not ${what}`);
      throw error;
    }
  };
  const found = await may('get namespace kube-system', ask(pathOf(NAMESPACES, undefined, 'kube-system')));
  const identity: unknown = found?.metadata?.uid;
  if (typeof identity !== 'string' || identity === '' || identity.length > LONGEST_UID)
    throw new Error('the API server does not say who it is: its namespace kube-system has no UID');
  for (const [what, path] of NEEDED) await may(what, ask(path, { limit: 1 }));
  const { gitVersion } = (await may('get /version', ask('/version'))) ?? {};
  return { identity, version: /^v?(\d{1,4}\.\d{1,4}(\.\d{1,4})?)/.exec(String(gitVersion))?.[1] ?? '' };
}

/** A malformed Node must fail here, not in later calculations. Throws the error of those calculations. */
function soundNode(node: Node): Node {
  const kept = slimNode(node);
  nodeAmounts(kept);
  conditionIsTrue(kept, 'Ready');
  return kept;
}

function soundPod(pod: Pod): Pod {
  const kept = keptPod(pod);
  podRequests(kept);
  return kept;
}

/** Callbacks of a connection to an attached cluster. */
interface AttachedNews {
  /** A node or pod has changed. */
  changed(): void;
  /** The API server stopped answering, or answers again. */
  answers(now: boolean): void;
  /** Another cluster answers at the address. The connection has ended. */
  replaced(): void;
}

/** An open connection to an attached cluster: its nodes and pods are watched, and its identity is checked. */
export class AttachedConnection implements OpenCluster {
  readonly client: KubeClient;
  readonly server: string;
  readonly identity: string;
  readonly nodes: Informer<Node>;
  readonly pods: Informer<Pod>;
  readonly #health: ConnectionHealth;
  readonly #isShared: boolean;
  readonly #stopListeners: (() => void)[] = [];
  #version: string;
  #failure = '';

  /**
   * @param of `tenant`: namespace of the cluster in the garden; `shared`: others use the client too, so it stays open
   * when the connection ends
   */
  constructor(
    of: { client: KubeClient; seen: SeenCluster; tenant: string; name?: string; shared?: boolean; log: Log },
    news: AttachedNews,
  ) {
    const { client, seen, tenant, name = client.server, shared = false, log } = of;
    this.client = client;
    this.server = client.server;
    const { identity } = seen;
    this.identity = identity;
    this.#version = seen.version;
    this.#isShared = shared;
    const ask = async (): Promise<boolean> => {
      const late = loopTimeout(ASK_MS);
      try {
        const now = await whoIs(client, late.signal);
        if (now.identity === identity) {
          this.#version = now.version;
          return true;
        }
        // Stopped at once: later writes would reach another cluster.
        void this.stop();
        news.replaced();
        return false;
      } catch (error) {
        this.#failure = failureText(error);
        return false;
      } finally {
        late.done();
      }
    };
    this.#health = new ConnectionHealth({ ask, told: (answers) => news.answers(answers) });
    const budget = tenantBudget(tenant);
    const options = { budget, owner: { namespace: tenant, cluster: name }, log, failed: () => this.#health.doubt() };
    this.nodes = new Informer<Node>(client, NODES, { ...options, transform: soundNode });
    this.pods = new Informer<Pod>(client, PODS, { ...options, transform: soundPod });
    for (const informer of [this.nodes, this.pods]) informer.onChange(() => news.changed());
  }

  /** False from when the API server was found not to answer until it answers again. */
  get answers(): boolean {
    return this.#health.answers;
  }

  /** For example 1.36.3; '' where it reports none that can be parsed. */
  get version(): string {
    return this.#version;
  }

  /** Error of the last failed check. */
  get failure(): string {
    return this.#failure;
  }

  /** Starts a check whether the API server answers and is the same cluster. */
  doubt(): void {
    this.#health.doubt();
  }

  /** Also rejects when the API server's answer exceeds the limits; call `stop` then. */
  async start(signal: AbortSignal): Promise<void> {
    for (const informer of [this.nodes, this.pods]) informer.start();
    await Promise.all([this.nodes, this.pods].map((informer) => informer.whenSynced(signal)));
  }

  onStop(listener: () => void): void {
    this.#stopListeners.push(listener);
  }

  async stop(): Promise<void> {
    this.#health.stop();
    for (const listener of this.#stopListeners.splice(0)) listener();
    await Promise.all([this.nodes, this.pods].map((informer) => informer.stop()));
    if (!this.#isShared) await this.client.close();
  }
}

const LONGEST_FAILURE = 300;

/** One line for a condition from any error of an API server that a tenant chose. */
export function failureText(error: unknown): string {
  if (error instanceof KubeApiError && error.isUnauthorized)
    return 'the API server does not accept the credentials of the kubeconfig';
  const text = error instanceof Error ? error.message : String(error);
  // Parsers quote the text they could not read, which may be a key.
  return (text.split('\n')[0] ?? '').slice(0, LONGEST_FAILURE);
}
