import type { KubeClient } from '../kube/client.ts';
import { hostOf } from '../kube/http/address-guard.ts';
import { type ChangeEvent, Informer } from '../kube/informer.ts';
import type { Log } from '../kube/log.ts';
import { ENDPOINTSLICES, type KubeObject, NODES, type Node } from '../kube/resources.ts';
import { HostAddresses, type Resolve } from './host-addresses.ts';

interface EndpointSlice extends KubeObject {
  endpoints?: { addresses: string[] }[];
}

/** Label of the EndpointSlices with a seed's own API servers. */
const OF_API_SERVERS = { namespace: 'default', labelSelector: 'kubernetes.io/service-name=kubernetes' };

/** Nodes are many and change every minute: only their addresses are cached. */
const slimNode = ({ apiVersion, kind, metadata: { name, uid, resourceVersion }, status }: Node): Node =>
  ({
    apiVersion,
    kind,
    metadata: { name, uid, resourceVersion },
    status: { addresses: status?.addresses },
  }) as Node;

const addressesOf = (node: Node): string[] => (node.status?.addresses ?? []).map(({ address }) => address);
const endpointsOf = (slice: EndpointSlice): string[] => (slice.endpoints ?? []).flatMap(({ addresses }) => addresses);

/** Addresses of a seed's nodes and API servers, from its API server, and of the host in its kubeconfig. */
export class SeedAddresses {
  /** Host in the kubeconfig: an address or a name. */
  readonly #server: HostAddresses;
  readonly #nodes: Informer<Node>;
  readonly #apiServers: Informer<EndpointSlice>;
  readonly #informers: readonly Informer<any>[];

  /**
   * @param changed called when an address was added or removed
   * @param resolve replaces DNS in tests
   */
  constructor(client: KubeClient, log: Log, changed: () => void, resolve?: Resolve) {
    this.#server = new HostAddresses(hostOf(new URL(client.server)), changed, resolve && { resolve });
    this.#nodes = new Informer<Node>(client, NODES, { transform: slimNode, log });
    this.#apiServers = new Informer<EndpointSlice>(client, ENDPOINTSLICES, { ...OF_API_SERVERS, log });
    this.#informers = [this.#nodes, this.#apiServers];
    const tell =
      <T extends KubeObject>(of: (object: T) => string[]) =>
      ({ object, old }: ChangeEvent<T>) => {
        if (!old || `${of(old)}` !== `${of(object)}`) changed();
      };
    this.#nodes.onChange(tell(addressesOf));
    this.#apiServers.onChange(tell(endpointsOf));
  }

  /** Resolves when the caches are synced and the first look-up is done. */
  async start(signal: AbortSignal): Promise<void> {
    for (const informer of this.#informers) informer.start();
    await Promise.all([this.#server.start(), ...this.#informers.map((informer) => informer.whenSynced(signal))]);
  }

  async stop(): Promise<void> {
    this.#server.stop();
    await Promise.all(this.#informers.map((informer) => informer.stop()));
  }

  /** Addresses of all nodes, names included; callers that build ranges drop the names. */
  nodes(): string[] {
    return this.#nodes.list().flatMap(addressesOf);
  }

  /** Addresses of all API servers and of the kubeconfig's host. */
  apiServers(): string[] {
    return [...this.#server.list(), ...this.#apiServers.list().flatMap(endpointsOf)];
  }

  /** The kubeconfig's host whose address is unknown, with the reason. */
  get unknownHost(): { readonly host: string; readonly why: string } | undefined {
    const { host, problem } = this.#server;
    return problem === undefined ? undefined : { host, why: problem };
  }
}
