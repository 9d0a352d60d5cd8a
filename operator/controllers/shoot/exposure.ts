import { type CoppiceError, configurationProblem, notYetConfigured } from '../../api/errors.ts';
import { COMPONENTS } from '../../api/names.ts';
import type { Seed } from '../../api/seed.ts';
import { waitFor } from '../../kube/informer.ts';
import type { Service } from '../../kube/resources.ts';
import type { Operation } from './operation.ts';

/** A cloud's load balancer takes some minutes. */
const PATIENCE_MS = 10 * 60_000;

/** Why machines in a cloud could not reach API servers in this seed; undefined: they can. */
export function unreachable({ metadata, spec }: Seed): CoppiceError | undefined {
  const type = spec.exposure?.type ?? 'ClusterIP';
  if (type === 'LoadBalancer') return undefined;
  return configurationProblem(
    `seed ${metadata.name} exposes API servers by ${type} only, where machines in a cloud cannot reach them`,
    'Use a seed with spec.exposure.type LoadBalancer, whose load balancers have addresses that the cloud can reach.',
  );
}

/** The address of the load balancer before the API server, once it has one. */
export async function externalAddress({ seed, values }: Operation, signal: AbortSignal): Promise<string> {
  const key = `${values.namespace}/${COMPONENTS.apiServer}`;
  const ingress = () => (seed.services.get(key) as Service | undefined)?.status?.loadBalancer?.ingress?.[0];
  await waitFor([seed.services], () => ingress() !== undefined, {
    timeoutMs: PATIENCE_MS,
    signal,
    what: () => `the load balancer of Service ${key} in seed ${seed.name} to have an address`,
  });
  const { ip, hostname } = ingress()!;
  if (ip) return ip;
  // The cluster's own Service `kubernetes` leads there, and Services lead to addresses.
  throw notYetConfigured(
    `the load balancer of Service ${key} in seed ${seed.name} has the name ${hostname} and no address`,
    'Use a seed whose load balancers have addresses.',
  );
}
