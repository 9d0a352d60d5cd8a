import { isIP } from 'node:net';
import { type CoppiceError, configurationProblem, notYetConfigured } from '../../api/errors.ts';
import type { Seed } from '../../api/seed.ts';
import { waitFor } from '../../kube/informer.ts';
import { NODES, type Node, type Service } from '../../kube/resources.ts';
import { exposedEndpointOf } from '../../shoot/exposure.ts';
import type { Endpoint } from '../../shoot/values.ts';
import type { Operation } from './operation.ts';

/** Time for a cloud's load balancer. */
const PATIENCE_MS = 10 * 60_000;

/** Why machines in a cloud cannot reach API servers in this seed; undefined: they can. */
export function unreachableReason({ metadata, spec }: Seed): CoppiceError | undefined {
  const type = spec.exposure?.type ?? 'ClusterIP';
  if (type === 'LoadBalancer') return undefined;
  return configurationProblem(
    `seed ${metadata.name} exposes API servers by ${type} only, where machines in a cloud cannot reach them`,
    'Use a seed with spec.exposure.type LoadBalancer, whose load balancers have addresses that the cloud can reach.',
  );
}

/**
 * External endpoint of the shoot's API server; waits for a load balancer. undefined: Services are reachable directly.
 */
export async function expose(op: Operation, made: Service, signal: AbortSignal): Promise<Endpoint | undefined> {
  const { seed, values } = op;
  if (values.exposure === undefined || values.exposure === 'ClusterIP') return undefined;
  const nodes =
    values.exposure === 'NodePort' && !values.exposedAt ? (await seed.client.list<Node>(NODES, { signal })).items : [];
  const key = `${values.namespace}/${made.metadata.name}`;
  const look = () => exposedEndpointOf(seed.services.get(key) ?? made, nodes, values.exposedAt);
  if (values.exposure === 'NodePort' && !look())
    throw notYetConfigured(`seed ${seed.name} has no Ready node with an address to expose on`);
  await waitFor([seed.services], () => look() !== undefined, {
    timeoutMs: PATIENCE_MS,
    signal,
    what: `the load balancer of Service ${key} in seed ${seed.name} to have an address`,
  });
  const endpoint = look()!;
  // The cluster's Service `kubernetes` uses it, and Endpoints need addresses.
  if (values.machinesOutside && isIP(endpoint.host) === 0)
    throw notYetConfigured(
      `the load balancer of Service ${key} in seed ${seed.name} has the name ${endpoint.host} and no address`,
      'Use a seed whose load balancers have addresses.',
    );
  return endpoint;
}
