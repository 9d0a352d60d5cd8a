import type { KubeClient } from '../kube/client.ts';
import { type ChangeEvent, Informer } from '../kube/informer.ts';
import type { Log } from '../kube/log.ts';
import { ENDPOINTSLICES, type KubeObject, NODES, type Node } from '../kube/resources.ts';

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

/** Addresses of a seed's nodes and API servers, as its API server tells them. Names are left out by those who make ranges of them. */
export class SeedAddresses {
  readonly #client: Pick<KubeClient, 'server'>;
  readonly #nodes: Informer<Node>;
  readonly #apiServers: Informer<EndpointSlice>;
  readonly informers: readonly Informer<any>[];

  /** @param changed is called when an address came or went */
  constructor(client: KubeClient, log: Log, changed: () => void) {
    this.#client = client;
    this.#nodes = new Informer<Node>(client, NODES, { transform: slimNode, log });
    this.#apiServers = new Informer<EndpointSlice>(client, ENDPOINTSLICES, { ...OF_API_SERVERS, log });
    this.informers = [this.#nodes, this.#apiServers];
    const tell =
      <T extends KubeObject>(of: (object: T) => string[]) =>
      ({ object, old }: ChangeEvent<T>) => {
        if (!old || `${of(old)}` !== `${of(object)}`) changed();
      };
    this.#nodes.onChange(tell(addressesOf));
    this.#apiServers.onChange(tell(endpointsOf));
  }

  /** Of all nodes. */
  nodes(): string[] {
    return this.#nodes.list().flatMap(addressesOf);
  }

  /** Of all API servers, and what the kubeconfig names. */
  apiServers(): string[] {
    return [new URL(this.#client.server).hostname, ...this.#apiServers.list().flatMap(endpointsOf)];
  }
}
