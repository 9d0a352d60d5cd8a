import { configurationProblem, notYetConfigured } from '../../api/errors.ts';
import { LABELS } from '../../api/group.ts';
import type { HubSpec } from '../../api/hub.ts';
import { identityOf } from '../../clusters/seed-access.ts';
import { hubType } from '../../hubs/index.ts';
import { KubeClient } from '../../kube/client.ts';
import { Informer } from '../../kube/informer.ts';
import type { Log } from '../../kube/log.ts';
import { decoded, type KubeObject, SECRETS, type Secret } from '../../kube/resources.ts';

/** An open connection to a hub. */
export interface HubConnection {
  readonly client: KubeClient;
  /** UID of its namespace kube-system. */
  readonly identity: string;
}

interface Opened extends HubConnection {
  readonly credentials: string;
  watches: Informer[];
}

const ANSWER_MS = 30_000;

/** The hubs that are reachable, by the name of their Hub; one without kubeconfigRef is the garden itself. */
export class HubConnections {
  readonly #connections = new Map<string, Opened>();
  readonly #garden: KubeClient;
  readonly #namespace: string;
  readonly #log: Log;
  readonly #changed: (membershipUID: string) => void;

  /** @param changed told of each object in a hub that changes, by the UID of its membership */
  constructor(garden: KubeClient, namespace: string, log: Log, changed: (membershipUID: string) => void) {
    this.#garden = garden;
    this.#namespace = namespace;
    this.#log = log;
    this.#changed = changed;
  }

  /**
   * The connection to a hub, made if needed, and made anew when its credentials changed.
   * @param pinned which cluster it was seen to be. Throws when it is another one by now, and when it cannot be reached
   */
  async open(name: string, spec: HubSpec, pinned: string | undefined, signal: AbortSignal): Promise<HubConnection> {
    const credentials = await this.#credentials(name, spec, signal);
    const known = this.#connections.get(name);
    if (known?.credentials === credentials) return refuseOther(name, known, pinned);
    await this.close(name);
    const source = `the kubeconfig of Hub ${name}`;
    const client = credentials === '' ? this.#garden : KubeClient.fromAdministratorsKubeconfig(credentials, source);
    try {
      const identity = await identityOf(client, AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]));
      const connection: Opened = { client, identity, credentials, watches: [] };
      refuseOther(name, connection, pinned);
      this.#connections.set(name, connection);
      return connection;
    } catch (error) {
      if (client !== this.#garden) await client.close();
      throw error;
    }
  }

  /** Has changes of what was made in the hub heard of. The kinds are known to be served there. */
  watch(name: string, spec: HubSpec): void {
    const connection = this.#connections.get(name);
    if (!connection || connection.watches.length > 0) return;
    // Tokens and kubeconfigs of members lie in Secrets with every hub.
    connection.watches = [SECRETS, ...(hubType(spec.type)?.watches ?? [])].map((resource) => {
      const informer = new Informer(connection.client, resource, {
        labelSelector: LABELS.membership,
        transform: onlyVersion,
        log: this.#log,
      });
      informer.onChange(({ object }) => this.#changed(object.metadata.labels?.[LABELS.membership] ?? ''));
      informer.start();
      return informer;
    });
  }

  async close(name: string): Promise<void> {
    const connection = this.#connections.get(name);
    if (!connection) return;
    this.#connections.delete(name);
    await Promise.all(connection.watches.map((watch) => watch.stop()));
    if (connection.client !== this.#garden) await connection.client.close();
  }

  async closeAll(): Promise<void> {
    for (const name of [...this.#connections.keys()]) await this.close(name);
  }

  async #credentials(name: string, { kubeconfigRef }: HubSpec, signal: AbortSignal): Promise<string> {
    if (!kubeconfigRef) return '';
    const place = `Secret ${this.#namespace}/${kubeconfigRef.name}`;
    const secret = await this.#garden.getOrUndefined<Secret>(SECRETS, kubeconfigRef.name, this.#namespace, { signal });
    const { value, kubeconfig } = decoded(secret?.data);
    const text = value || kubeconfig;
    if (text) return text;
    throw notYetConfigured(
      `${place}, which Hub ${name} names, ${secret ? 'has no kubeconfig' : 'does not exist'}`,
      'Put a kubeconfig of the hub there, under key value.',
    );
  }
}

/** What is kept of what was made in a hub: that it has changed is all that is asked. */
const onlyVersion = ({ apiVersion, kind, metadata }: KubeObject): KubeObject => {
  const { name, namespace, uid, resourceVersion, labels } = metadata;
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      ...(namespace && { namespace }),
      ...(uid && { uid }),
      ...(resourceVersion && { resourceVersion }),
      labels: { [LABELS.membership]: labels?.[LABELS.membership] ?? '' },
    },
  };
};

/** By a kubeconfig that was exchanged, all members would be made a second time in another hub, and be taken for gone in this one. */
function refuseOther(name: string, connection: HubConnection, pinned: string | undefined): HubConnection {
  if (pinned === undefined || pinned === connection.identity) return connection;
  throw configurationProblem(
    `the kubeconfig of Hub ${name} points to another cluster (UID of kube-system ${connection.identity}, not ${pinned}): nothing is made or deleted there`,
    'Put back a kubeconfig of the right hub; for another one, make another Hub.',
  );
}
