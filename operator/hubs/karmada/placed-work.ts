import { hubAmountsOf } from '../amounts.ts';
import type { CustomKind, Demand, PlacedSource, PlacedWork } from '../contract.ts';
import {
  acceptsMember,
  type BindingObject,
  type BindingPlacement,
  type Bindings,
  bindingText,
  customKindOf,
  looksAtRoom,
} from './bindings.ts';
import { LEAVES } from './cluster.ts';

/**
 * Workloads with replicas on a cluster, and why Karmada would not move each to a cluster with room: it also evicts
 * duplicated and statically weighted ones, and then places them nowhere, or without considering free capacity. Pure.
 * @param kinds custom kinds
 */
export function movableOn(
  bindings: Bindings,
  cluster: string,
  kinds: ReadonlyMap<string, CustomKind> = new Map(),
): PlacedWork[] {
  // // One function object per equal placement, so that bin packing recognizes equal demands.
  const known = new Map<string, NonNullable<Demand['accepts']>>();
  const acceptedBy = (placement: BindingPlacement = {}) => {
    const key = JSON.stringify(placement);
    const accepts = known.get(key) ?? acceptsMember(placement);
    known.set(key, accepts);
    return accepts;
  };
  return bindings.flatMap(({ resource, binding }): PlacedWork[] => {
    const { spec = {}, metadata } = binding;
    const here = spec.clusters?.find(({ name }) => name === cluster);
    const { kind = '', namespace = metadata.namespace ?? '', name = '' } = spec.resource ?? {};
    const count = here?.replicas ?? (here ? (spec.replicas ?? 0) : 0);
    if (count === 0 && !spec.components?.length) return [];
    const stays = whyStays(binding);
    const customKind = kinds.get(customKindOf(binding) ?? '');
    const isWhole = spec.placement?.spreadConstraints?.some(({ maxGroups }) => maxGroups === 1);
    return [
      {
        source: bindingText(resource, binding),
        count,
        each: hubAmountsOf(spec.replicaRequirements?.resourceRequest),
        workload: { kind, namespace, name },
        accepts: acceptedBy(spec.placement),
        ...(customKind && { customKind }),
        ...(isWhole && { inOneCluster: true as const }),
        ...(stays && { stays }),
      },
    ];
  });
}

/** Workloads with replicas, and the clusters that Karmada chose for them. Pure. */
export const workPlacedIn = (bindings: Bindings): PlacedSource[] =>
  bindings.flatMap(({ resource, binding }): PlacedSource[] => {
    const { clusters = [], replicas = 0, components = [], placement, resource: of = {} } = binding.spec ?? {};
    const members = clusters.filter((one) => (one.replicas ?? replicas) > 0 || components.length > 0);
    if (members.length === 0) return [];
    const { namespace = binding.metadata.namespace ?? '', name = '' } = of;
    // // Fixed weights give each cluster a share, like duplicates.
    const isDivided = looksAtRoom(placement);
    return [
      {
        source: bindingText(resource, binding),
        members: members.map((one) => one.name),
        workload: { namespace, name },
        ...(isDivided && { isDivided }),
      },
    ];
  });

function whyStays({ spec = {} }: BindingObject): string | undefined {
  const { placement = {}, components = [], gracefulEvictionTasks = [], suspension } = spec;
  const { spreadConstraints = [], clusterTolerations = [], replicaScheduling } = placement;
  if (suspension?.scheduling) return 'is not scheduled, as its policy is suspended';
  if (gracefulEvictionTasks.length > 0) return 'is being moved already';
  if (components.length > 0) return 'has several parts, of which Karmada does not say how many are where';
  if (replicaScheduling?.replicaSchedulingType !== 'Divided')
    return 'is copied to its clusters, not moved between them';
  if (!looksAtRoom(placement)) return 'is divided by fixed weights, whatever is free';
  if (spreadConstraints.some(({ minGroups = 1 }) => minGroups > 1)) return 'is to be spread over several clusters';
  const tolerates = clusterTolerations.some(
    ({ key, effect }) => (!key || key === LEAVES.key) && (!effect || effect === LEAVES.effect),
  );
  return tolerates ? `tolerates taint ${LEAVES.key}, by which work is moved` : undefined;
}
