import type { KubeClient } from '../../operator/kube/client.ts';
import { Informer } from '../../operator/kube/informer.ts';
import { SERVICES, type Service } from '../../operator/kube/resources.ts';

/**
 * What a cloud does in its clusters: every Service of type LoadBalancer gets an address, here its own within the cluster, which the
 * host and a private network with a link to the cluster's node reach. Ends with `close`.
 */
export async function loadBalancers(client: KubeClient): Promise<{ close(): Promise<void> }> {
  const services = new Informer<Service>(client, SERVICES);
  const give = ({ metadata, spec, status }: Service) => {
    const { type, clusterIP } = spec;
    if (type !== 'LoadBalancer' || !clusterIP || status?.loadBalancer?.ingress?.[0]?.ip === clusterIP) return;
    const balanced = { status: { loadBalancer: { ingress: [{ ip: clusterIP, ipMode: 'VIP' }] } } };
    client
      .mergePatch(SERVICES, metadata.name, metadata.namespace, balanced, { subresource: 'status' })
      .catch((error: Error) => console.warn(`load balancer of ${metadata.name}: ${error.message}`));
  };
  services.onChange(({ type, object }) => type !== 'deleted' && give(object));
  services.start();
  await services.whenSynced(AbortSignal.timeout(30_000));
  return { close: () => services.stop() };
}
