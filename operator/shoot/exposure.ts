import { conditionIsTrue, type Node, type Service } from '../kube/resources.ts';
import { API_SERVER_PORT, type Endpoint } from './values.ts';

/**
 * The endpoint that a Service of type NodePort or LoadBalancer gives; undefined while it has none. Of a NodePort it is the
 * address that the seed names, or of the oldest node that is Ready: another one means new certificates, and the oldest changes the least.
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

/** As people outside of the seed reach it: nodes in a cloud have an external address, those of kind only the internal one. */
const addressOf = ({ status }: Node): string | undefined =>
  ['ExternalIP', 'InternalIP']
    .map((type) => status?.addresses?.find((address) => address.type === type)?.address)
    .find(Boolean);
