import type { Reader } from '../../hubs/contract.ts';
import { type KubeObject, keyOf, type Pod, PVCS, SERVICES } from '../../kube/resources.ts';
import { readableExports } from './exports.ts';
import { isSystemObject, type SystemNamespaces } from './members-work.ts';
import { isWorkOnNode } from './room.ts';

/** Immovable content of a cluster: pods, their volumes, and load balancers of its cloud. */
interface Inside {
  readonly pods: readonly Pod[];
  readonly claims: readonly KubeObject[];
  readonly services: readonly KubeObject[];
}

/** Content that no hub placed and that would end with the cluster. As text; pure. */
export function ownWork(hub: SystemNamespaces, { pods, claims, services }: Inside): string[] {
  const isBound = (claim: KubeObject) => claim.status?.phase === 'Bound' && !isSystemObject(hub, claim);
  const isBalanced = (service: KubeObject) =>
    (service.spec as { type?: string } | undefined)?.type === 'LoadBalancer' && !isSystemObject(hub, service);
  return [
    ...pods.filter((pod) => isWorkOnNode(hub, pod)).map((one) => `Pod ${keyOf(one)}`),
    ...claims.filter(isBound).map((one) => `PersistentVolumeClaim ${keyOf(one)}`),
    ...services.filter(isBalanced).map((one) => `Service ${keyOf(one)} with a load balancer`),
  ].sort();
}

/** Like ownWork, read from a cluster that answers. */
export async function ownWorkIn(hub: SystemNamespaces, inside: Reader, pods: readonly Pod[]): Promise<string[]> {
  const [claims, services] = await Promise.all([
    readableExports(inside.list(PVCS)),
    readableExports(inside.list(SERVICES)),
  ]);
  return ownWork(hub, { pods, claims, services });
}
