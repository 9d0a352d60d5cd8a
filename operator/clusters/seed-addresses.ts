import type { KubeClient } from '../kube/client.ts';
import { hostOf } from '../kube/http/address-guard.ts';
import { type ChangeEvent, Informer } from '../kube/informer.ts';
import type { Log } from '../kube/log.ts';
import { ENDPOINTSLICES, type KubeObject, NODES, type Node } from '../kube/resources.ts';
import { HostAddresses, type Resolve } from './host-addresses.ts';

interface EndpointSlice extends KubeObject {
  endpoints?: { addresses: string[] }[];
}

/** Where a seed's own API servers are, as Kubernetes tells its pods. */
const OF_API_SERVERS = { namespace: 'default', labelSelector: 'kubernetes.io/service-name=kubernetes' };

/** Nodes are many, and change each minute: nothing but their addresses is kept. */
const slimNode = ({ apiVersion, kind, metadata: { name, uid, resourceVersion }, status }: Node): Node =>
  ({
    apiVersion,
    kind,
    metadata: { name, uid, resourceVersion },
    status: { addresses: status?.addresses },
  }) as Node;

const addressesOf = (node: Node): string[] => (node.status?.addresses ?? []).map(({ address }) => address);
const endpointsOf = (slice: EndpointSlice): string[] => (slice.endpoints ?? []).flatMap(({ addresses }) => addresses);

/** Addresses of a seed's nodes and API servers, as its API server tells them, and of the host in its kubeconfig. */
export class SeedAddresses {
  /** In the kubeconfig: an address or a name. */
  readonly #server: HostAddresses;
  readonly #nodes: Informer<Node>;
  readonly #apiServers: Informer<EndpointSlice>;
  readonly #informers: readonly Informer<any>[];

  /**
   * @param changed is called when an address came or went
   * @param resolve stands in for name servers in tests
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

  /** Resolves when all is known that can be found out now. */
  async start(signal: AbortSignal): Promise<void> {
    for (const informer of this.#informers) informer.start();
    await Promise.all([this.#server.start(), ...this.#informers.map((informer) => informer.whenSynced(signal))]);
  }

  async stop(): Promise<void> {
    this.#server.stop();
    await Promise.all(this.#informers.map((informer) => informer.stop()));
  }

  /** Of all nodes: also their names, which whoever makes ranges of them leaves out. */
  nodes(): string[] {
    return this.#nodes.list().flatMap(addressesOf);
  }

  /** Of all API servers, and where the kubeconfig leads. */
  apiServers(): string[] {
    return [...this.#server.list(), ...this.#apiServers.list().flatMap(endpointsOf)];
  }

  /** A host in the kubeconfig of which no address is known, and why. */
  get unknownHost(): { readonly host: string; readonly why: string } | undefined {
    const { host, problem } = this.#server;
    return problem === undefined ? undefined : { host, why: problem };
  }
}
