import type { Reader } from '../../hubs/contract.ts';
import { type KubeObject, keyOf, type Pod, PVCS, SERVICES } from '../../kube/resources.ts';
import { readable } from './exports.ts';
import { isSystem, type SystemNamespaces } from './members-work.ts';
import { isWorkOnNode } from './room.ts';

/** What is in a cluster that nobody moves: its pods, the volumes that they keep data on, and load balancers that its cloud has made. */
interface Inside {
  readonly pods: readonly Pod[];
  readonly claims: readonly KubeObject[];
  readonly services: readonly KubeObject[];
}

/** What would end with a cluster that its hubs have drained: no hub has placed it. In words; pure. */
export function ownWork(hub: SystemNamespaces, { pods, claims, services }: Inside): string[] {
  const isBound = (claim: KubeObject) => claim.status?.phase === 'Bound' && !isSystem(hub, claim);
  const isBalanced = (service: KubeObject) =>
    (service.spec as { type?: string } | undefined)?.type === 'LoadBalancer' && !isSystem(hub, service);
  return [
    ...pods.filter((pod) => isWorkOnNode(hub, pod)).map((one) => `Pod ${keyOf(one)}`),
    ...claims.filter(isBound).map((one) => `PersistentVolumeClaim ${keyOf(one)}`),
    ...services.filter(isBalanced).map((one) => `Service ${keyOf(one)} with a load balancer`),
  ].sort();
}

/** The same of a cluster that answers. */
export async function ownWorkIn(hub: SystemNamespaces, inside: Reader, pods: readonly Pod[]): Promise<string[]> {
  const [claims, services] = await Promise.all([readable(inside.list(PVCS)), readable(inside.list(SERVICES))]);
  return ownWork(hub, { pods, claims, services });
}
