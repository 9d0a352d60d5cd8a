import { conditionIsTrue, type Node, type Service } from '../kube/resources.ts';
import { API_SERVER_PORT, type Endpoint } from './values.ts';

/**
 * Endpoint of a Service of type NodePort or LoadBalancer; undefined while it has none. For NodePort it is the seed's
 * configured address, or that of the oldest Ready node: a change requires new certificates, and the oldest changes
 * least.
 */
export function exposedEndpointOf(service: Service, nodes: readonly Node[], address?: string): Endpoint | undefined {
  if (service.spec.type === 'LoadBalancer') {
    const { ip, hostname } = service.status?.loadBalancer?.ingress?.[0] ?? {};
    const host = ip ?? hostname;
    return host ? { host, port: API_SERVER_PORT } : undefined;
  }
  const port = service.spec.ports?.[0]?.nodePort;
  const host =
    address ??
    nodes
      .filter((node) => conditionIsTrue(node, 'Ready') && !node.metadata.deletionTimestamp)
      .sort(byAge)
      .flatMap((node) => addressOf(node) ?? [])[0];
  return host && port ? { host, port } : undefined;
}

const byAge = (a: Node, b: Node): number => rank(a).localeCompare(rank(b));
const rank = ({ metadata }: Node): string => `${metadata.creationTimestamp} ${metadata.name}`;

/**
 * The node's address from outside the seed: cloud nodes have an external address, nodes of kind only an internal one.
 */
const addressOf = ({ status }: Node): string | undefined =>
  ['ExternalIP', 'InternalIP']
    .map((type) => status?.addresses?.find((address) => address.type === type)?.address)
    .find(Boolean);
