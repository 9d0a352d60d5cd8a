import type { FoundResource, WantedResource } from './request.ts';
import {
  isInCloud,
  isProvider,
  isSecret,
  nameOf,
  pendingOf,
  resourcesOf,
  type StackState,
  type StateResource,
} from './stack-state.ts';

/** A resource that a run was about to create, as the engine told of it. */
export interface PlannedResource {
  urn: string;
  type: string;
  custom: boolean;
  parent?: string;
  provider?: string;
  inputs?: Record<string, unknown>;
}

/** What stands for values that are not known before something else exists (pulumi/sdk/go/common/resource/plugin/rpc.go). */
const UNKNOWN = new Set([
  '04da6b54-80e4-46f7-96ec-b56ff0331ba9',
  '1c4a061d-8072-4f0a-a4cb-0ff528b18fe7',
  '3eeb2bf0-c639-47a8-9e75-3b44932eb421',
  '6a19a0b0-7e62-4c92-b797-7f8e31da9cc2',
  '030794c1-ac77-496b-92df-f27374a8bd58',
  'e48ece36-62e2-4504-bad9-02848725956a',
  'dd056dcd-154b-4c76-9bd3-c8f88648b5ff',
]);
/** What events show in place of a secret. */
const MASKED = '[secret]';

const isKnown = (value: unknown): boolean =>
  // A secret without its text is none that a state can have.
  !UNKNOWN.has(value as string) && value !== MASKED && !isSecret(value);

/** A value without what is unknown or secret in it. */
export function known(value: unknown): unknown {
  if (Array.isArray(value)) return value.filter(isKnown).map(known);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, field]) => isKnown(field))
      .map(([key, field]) => [key, known(field)]),
  );
}

export const wantedOf = ({ urn, type, inputs }: PlannedResource): WantedResource => ({
  urn,
  type,
  name: nameOf(urn),
  inputs: known(inputs ?? {}) as Record<string, unknown>,
});

/** Resources that a killed run was creating: they may exist without state knowing, and would be made a second time. */
export const pendingCreates = (state: StackState): PlannedResource[] =>
  pendingOf(state)
    .filter(({ type, resource }) => type === 'creating' && isInCloud(resource))
    .map(({ resource }) => resource);

/** Of what a run wanted to create: what state does not have, though it may exist. */
export function missingFrom(state: StackState, planned: readonly PlannedResource[]): PlannedResource[] {
  const there = new Set(resourcesOf(state).map(({ urn }) => urn));
  return planned.filter((resource) => isInCloud(resource) && !there.has(resource.urn));
}

/** URNs of resources that were found and of which the cloud was not asked yet: what it says of them is missing. */
export const neverRead = (state: StackState): string[] =>
  resourcesOf(state)
    .filter((resource) => isInCloud(resource) && !resource.outputs && !resource.delete)
    .map(({ urn }) => urn);

/** What was found for URNs. */
export type Found = ReadonlyMap<string, FoundResource>;

/**
 * Pure: the state after a crash, settled: pending creates that were found in the cloud are resources of the stack, all
 * others never happened. `suspects` are the URNs whose state is to be read from the cloud before it is built upon.
 */
export function settlePending(state: StackState, found: Found): { state: StackState; suspects: string[] } {
  const resources = [...resourcesOf(state)];
  const suspects: string[] = [];
  for (const { type, resource } of pendingOf(state)) {
    const id = type === 'creating' ? found.get(resource.urn)?.id : undefined;
    const at = resources.findIndex(({ urn, delete: isLeaving }) => urn === resource.urn && !isLeaving);
    if (id !== undefined && resources[at]?.id !== id) {
      // The successor of a replacement was made, its predecessor is still to go.
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
 * Pure: a state with resources added that exist in the cloud and that it did not know. What a run planned to create tells
 * what surrounds them (parents, providers). `newID` makes ids of provider resources, which exist in state only.
 */
export function addFound(
  state: StackState,
  planned: readonly PlannedResource[],
  found: Found,
  newID: () => string,
): { state: StackState; suspects: string[] } {
  const resources = [...resourcesOf(state)];
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
      inputs: known(found.get(urn)?.inputs ?? resource.inputs ?? {}) as Record<string, unknown>,
      ...(found.get(urn)?.retain && { retainOnDelete: true }),
      ...(parent && { parent }),
      ...(providerURN && { provider: `${providerURN}::${find(providerURN)?.id ?? ''}` }),
      // Events do not tell what depends on what. On everything before it is enough to take things away in a safe order;
      // the next run of the program writes the truth.
      dependencies: isInCloud(resource) ? resources.filter(isInCloud).map((other) => other.urn) : [],
    } satisfies StateResource);
  };

  const suspects = planned.map(({ urn }) => urn).filter((urn) => found.has(urn) && !find(urn));
  for (const urn of suspects) add(urn);
  return { state: { ...state, deployment: { ...state.deployment, resources } }, suspects };
}
