import { readBytes, readCpu, saturatedInteger } from '../api/quantity.ts';
import type { ContainerResources, Pod } from './resources.ts';

type Quantities = Readonly<Record<string, string>> | undefined;
type Sum = Map<string, number>;

/** Parses one quantity: millicores for cpu, whole units for other resources. Throws RangeError. */
const amountOf = (name: string, quantity: string): number => (name === 'cpu' ? readCpu(quantity) : readBytes(quantity));

/** Whether a pod may request this resource at pod level, which replaces the requests of its containers. */
const isPodLevel = (name: string): boolean => name === 'cpu' || name === 'memory' || name.startsWith('hugepages-');

/**
 * Amounts by resource name: millicores of cpu, whole units of other resources. Throws RangeError for an invalid
 * quantity.
 */
export function amountsByName(quantities: Quantities): Sum {
  return new Map(Object.entries(quantities ?? {}).map(([name, quantity]) => [name, amountOf(name, quantity)]));
}

function add(sum: Sum, more: Sum): void {
  for (const [name, amount] of more) sum.set(name, saturatedInteger((sum.get(name) ?? 0) + amount));
}

function raise(peak: Sum, other: Sum): void {
  for (const [name, amount] of other) peak.set(name, Math.max(peak.get(name) ?? 0, amount));
}

interface ResizedContainer {
  name: string;
  resources?: { requests?: Quantities };
  allocatedResources?: Quantities;
}

/** Resources that a container holds during an in-place resize: the maximum of desired, allocated and actual. */
function whileResized(wished: Sum, status: ResizedContainer | undefined, isInfeasible: boolean): Sum {
  if (!status?.resources) return wished;
  const held = isInfeasible ? new Map<string, number>() : new Map(wished);
  raise(held, amountsByName(status.resources.requests));
  raise(held, amountsByName(status.allocatedResources));
  return held;
}

/**
 * Resources that a pod takes from its node, by the scheduler's rule: containers and sidecars together, or the peak
 * during init containers; pod-level requests replace that; plus overhead. By resource name: millicores of cpu, whole
 * units of other resources. Pure.
 * @throws RangeError for an invalid quantity
 */
export function effectiveRequests({ spec, status }: Pick<Pod, 'spec' | 'status'>): Map<string, number> {
  const statuses = new Map<string, ResizedContainer>(
    [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])].map((one) => [one.name, one]),
  );
  const isInfeasible =
    status?.conditions?.some(({ type, reason }) => type === 'PodResizePending' && reason === 'Infeasible') ?? false;
  // The API server copies limits to missing requests; a pod template has not passed the API server yet.
  const asked = (of: ContainerResources | undefined) => amountsByName({ ...of?.limits, ...of?.requests });
  const held = (name: string, of: ContainerResources | undefined) =>
    whileResized(asked(of), statuses.get(name), isInfeasible);

  const sum: Sum = new Map();
  for (const { name, resources } of spec.containers) add(sum, held(name, resources));
  const sidecars: Sum = new Map();
  const peak: Sum = new Map();
  for (const { name, resources, restartPolicy } of spec.initContainers ?? []) {
    if (restartPolicy === 'Always') {
      const own = held(name, resources);
      add(sum, own);
      add(sidecars, own);
      raise(peak, sidecars);
    } else {
      const own = asked(resources);
      add(own, sidecars);
      raise(peak, own);
    }
  }
  raise(sum, peak);
  const whole = amountsByName(spec.resources?.requests);
  const wholeHeld = whileResized(whole, status as ResizedContainer | undefined, isInfeasible);
  for (const name of whole.keys()) if (isPodLevel(name)) sum.set(name, wholeHeld.get(name) ?? 0);
  add(sum, amountsByName(spec.overhead));
  return sum;
}
