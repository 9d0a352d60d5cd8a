import type { FoundResource, WantedResource } from './request.ts';
import {
  isInCloud,
  isProvider,
  isSecret,
  pendingOf,
  resourceNameOf,
  type StackState,
  type StateResource,
  stackResourcesOf,
} from './stack-state.ts';

/** A resource that a run was about to create, from the engine's events. */
export interface PlannedResource {
  urn: string;
  type: string;
  custom: boolean;
  parent?: string;
  provider?: string;
  inputs?: Record<string, unknown>;
}

/**
 * Placeholders of values that are unknown until something else exists (pulumi/sdk/go/common/resource/plugin/rpc.go).
 */
const UNKNOWN = new Set([
  '04da6b54-80e4-46f7-96ec-b56ff0331ba9',
  '1c4a061d-8072-4f0a-a4cb-0ff528b18fe7',
  '3eeb2bf0-c639-47a8-9e75-3b44932eb421',
  '6a19a0b0-7e62-4c92-b797-7f8e31da9cc2',
  '030794c1-ac77-496b-92df-f27374a8bd58',
  'e48ece36-62e2-4504-bad9-02848725956a',
  'dd056dcd-154b-4c76-9bd3-c8f88648b5ff',
]);
/** Placeholder of a secret in events. */
const MASKED = '[secret]';

const isKnown = (value: unknown): boolean =>
  // A masked secret cannot be written to a state.
  !UNKNOWN.has(value as string) && value !== MASKED && !isSecret(value);

/** The value without unknown and secret parts. */
export function withoutUnknown(value: unknown): unknown {
  if (Array.isArray(value)) return value.filter(isKnown).map(withoutUnknown);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, field]) => isKnown(field))
      .map(([key, field]) => [key, withoutUnknown(field)]),
  );
}

export const wantedOf = ({ urn, type, inputs }: PlannedResource): WantedResource => ({
  urn,
  type,
  name: resourceNameOf(urn),
  inputs: withoutUnknown(inputs ?? {}) as Record<string, unknown>,
});

/** Resources that a killed run was creating: they may exist without the state knowing, and would be created twice. */
export const pendingCreates = (state: StackState): PlannedResource[] =>
  pendingOf(state)
    .filter(({ type, resource }) => type === 'creating' && isInCloud(resource))
    .map(({ resource }) => resource);

/** Planned creations that the state lacks and that may exist. */
export function missingFrom(state: StackState, planned: readonly PlannedResource[]): PlannedResource[] {
  const there = new Set(stackResourcesOf(state).map(({ urn }) => urn));
  return planned.filter((resource) => isInCloud(resource) && !there.has(resource.urn));
}

/** URNs of imported resources that were not read yet. */
export const neverRead = (state: StackState): string[] =>
  stackResourcesOf(state)
    .filter((resource) => isInCloud(resource) && !resource.outputs && !resource.delete)
    .map(({ urn }) => urn);

/** Found resources by URN. */
type Found = ReadonlyMap<string, FoundResource>;

/**
 * Settles the state after a crash: pending creates that exist in the cloud become resources of the stack, others are
 * dropped. `suspects`: URNs to refresh before use. Pure.
 */
export function settlePending(state: StackState, found: Found): { state: StackState; suspects: string[] } {
  const resources = [...stackResourcesOf(state)];
  const suspects: string[] = [];
  for (const { type, resource } of pendingOf(state)) {
    const id = type === 'creating' ? found.get(resource.urn)?.id : undefined;
    const at = resources.findIndex(({ urn, delete: isLeaving }) => urn === resource.urn && !isLeaving);
    if (id !== undefined && resources[at]?.id !== id) {
      // The replacement was created; the replaced resource must still be deleted.
      if (at !== -1) resources[at] = { ...resources[at]!, delete: true };
      resources.push({ ...resource, id });
      suspects.push(resource.urn);
    } else if (at !== -1) suspects.push(resource.urn);
  }
  return {
    state: { ...state, deployment: { ...state.deployment, resources, pending_operations: [] } },
    suspects: [...new Set(suspects)],
  };
}

/**
 * Adds existing cloud resources to a state. Planned resources give their parents and providers. `newID` makes ids of
 * provider resources, which exist in the state only. Pure.
 */
export function addFound(
  state: StackState,
  planned: readonly PlannedResource[],
  found: Found,
  newID: () => string,
): { state: StackState; suspects: string[] } {
  const resources = [...stackResourcesOf(state)];
  const plan = new Map(planned.map((resource) => [resource.urn, resource]));
  const find = (urn: string) => resources.find((resource) => resource.urn === urn && !resource.delete);

  const add = (urn: string): void => {
    const resource = plan.get(urn);
    if (!resource || find(urn)) return;
    if (resource.parent) add(resource.parent);
    const providerURN = resource.provider?.slice(0, resource.provider.lastIndexOf('::'));
    if (providerURN) add(providerURN);
    const { type, custom, parent } = resource;
    const id = isProvider(type) ? newID() : found.get(urn)?.id;
    resources.push({
      urn,
      custom,
      type,
      ...(id !== undefined && { id }),
      inputs: withoutUnknown(found.get(urn)?.inputs ?? resource.inputs ?? {}) as Record<string, unknown>,
      ...(found.get(urn)?.retain && { retainOnDelete: true }),
      ...(parent && { parent }),
      ...(providerURN && { provider: `${providerURN}::${find(providerURN)?.id ?? ''}` }),
      // Events lack dependencies. Depending on everything earlier gives a safe order of deletion; the next run writes
      // the real ones.
      dependencies: isInCloud(resource) ? resources.filter(isInCloud).map((other) => other.urn) : [],
    } satisfies StateResource);
  };

  const suspects = planned.map(({ urn }) => urn).filter((urn) => found.has(urn) && !find(urn));
  for (const urn of suspects) add(urn);
  return { state: { ...state, deployment: { ...state.deployment, resources } }, suspects };
}
