import { configurationProblem, notYetConfigured } from '../../api/errors.ts';
import { LABELS } from '../../api/group.ts';
import type { HubSpec } from '../../api/hub.ts';
import { seedIdentityOf } from '../../clusters/seed-access.ts';
import { hubType } from '../../hubs/index.ts';
import { KubeClient } from '../../kube/client.ts';
import { Informer } from '../../kube/informer.ts';
import type { Log } from '../../kube/log.ts';
import { decodeSecret, type KubeObject, SECRETS, type Secret } from '../../kube/resources.ts';

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

/** Reachable hubs by name; a Hub without kubeconfigRef is the garden itself. */
export class HubConnections {
  readonly #connections = new Map<string, Opened>();
  readonly #garden: KubeClient;
  readonly #namespace: string;
  readonly #log: Log;
  readonly #changed: (membershipUID: string) => void;

  /** @param changed called for each changed object in a hub, with its membership's UID */
  constructor(garden: KubeClient, namespace: string, log: Log, changed: (membershipUID: string) => void) {
    this.#garden = garden;
    this.#namespace = namespace;
    this.#log = log;
    this.#changed = changed;
  }

  /**
   * The connection to a hub, opened if necessary, and reopened after changed credentials.
   * @param pinned recorded identity. Throws for another identity, and when unreachable
   */
  async open(name: string, spec: HubSpec, pinned: string | undefined, signal: AbortSignal): Promise<HubConnection> {
    const credentials = await this.#credentials(name, spec, signal);
    const known = this.#connections.get(name);
    if (known?.credentials === credentials) return refuseOther(name, known, pinned);
    await this.close(name);
    const source = `the kubeconfig of Hub ${name}`;
    const client = credentials === '' ? this.#garden : KubeClient.fromAdministratorsKubeconfig(credentials, source);
    try {
      const identity = await seedIdentityOf(client, AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]));
      const connection: Opened = { client, identity, credentials, watches: [] };
      refuseOther(name, connection, pinned);
      this.#connections.set(name, connection);
      return connection;
    } catch (error) {
      if (client !== this.#garden) await client.close();
      throw error;
    }
  }

  /** Watches the membership objects in the hub. Their kinds must be served there. */
  watch(name: string, spec: HubSpec): void {
    const connection = this.#connections.get(name);
    if (!connection || connection.watches.length > 0) return;
    // Every hub has Secrets with members' tokens and kubeconfigs.
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
    const { value, kubeconfig } = decodeSecret(secret?.data);
    const text = value || kubeconfig;
    if (text) return text;
    throw notYetConfigured(
      `${place}, which Hub ${name} names, ${secret ? 'has no kubeconfig' : 'does not exist'}`,
      'Put a kubeconfig of the hub there, under key value.',
    );
  }
}

/** Kept part of hub objects: only changes matter. */
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

/** With an exchanged kubeconfig, all members would be made again in another hub, and count as gone in this one. */
function refuseOther(name: string, connection: HubConnection, pinned: string | undefined): HubConnection {
  if (pinned === undefined || pinned === connection.identity) return connection;
  throw configurationProblem(
    `the kubeconfig of Hub ${name} points to another cluster (UID of kube-system ${connection.identity}, not ${pinned}): nothing is made or deleted there`,
    'Put back a kubeconfig of the right hub; for another one, make another Hub.',
  );
}
