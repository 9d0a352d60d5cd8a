import { waitFor } from '../../kube/informer.ts';
import { NODES, type Node, type Service } from '../../kube/resources.ts';
import { type Endpoint, endpointOf } from '../../shoot/exposure.ts';
import type { Operation } from './operation.ts';

/** How long a cloud may take for a load balancer, in milliseconds. */
const PATIENCE_MS = 5 * 60_000;

/** The endpoint of the shoot's API server outside of the seed; waits for a load balancer. Undefined: Services are reached as they are. */
export async function expose(op: Operation, made: Service, signal: AbortSignal): Promise<Endpoint | undefined> {
  const { seed, values } = op;
  if (values.exposure === undefined || values.exposure === 'ClusterIP') return undefined;
  const nodes = values.exposure === 'NodePort' ? (await seed.client.list<Node>(NODES, { signal })).items : [];
  const key = `${values.namespace}/${made.metadata.name}`;
  const endpoint = () => endpointOf(seed.services.get(key) ?? made, nodes);
  const known = endpoint();
  if (known) return known;
  if (values.exposure === 'NodePort')
    throw new Error(`seed ${seed.name} has no Ready node with an address to expose on`);
  await waitFor([seed.services], () => endpoint() !== undefined, {
    timeoutMs: PATIENCE_MS,
    signal,
    what: `Service ${key} of seed ${seed.name} to get the address of a load balancer`,
  });
  return endpoint();
}
