import { endpointOf } from './endpoints.ts';
import { forType, readFaults } from './faults.ts';
import type { Caller, CloudModel, CloudResource, Testbed } from './model.ts';
import type { Store } from './store.ts';

/** What the caller can see now, in a region. */
export function openTestbed(model: CloudModel, store: Store, caller: Caller, region: string, now: number): Testbed {
  const { unreadableForMs } = readFaults(store);
  const visible = store
    .list(now)
    .filter((one) => one.cloud === model.name && one.account === caller.account && !one.retired)
    .filter((one) => now >= one.createdAt + (forType(unreadableForMs, one.type) ?? 0));
  const testbed: Testbed = {
    caller,
    region,
    now,
    all: (type) => visible.filter((one) => type === undefined || one.type === type),
    find: (type, handle) => (typeof handle === 'string' ? findResource(model, testbed, type, handle) : undefined),
    outputs(resource) {
      const type = model.types.get(resource.type) ?? model.unknownType(resource.type);
      return { ...resource.inputs, ...model.commonOutputs(resource, testbed), ...type.outputs(resource, testbed) };
    },
    endpoint: (resource) => endpointOf(store, resource),
  };
  return testbed;
}

/** The resource that is called so: by id, by another form of it that import takes, or by name. */
export function findResource(
  model: CloudModel,
  testbed: Testbed,
  type: string,
  handle: string,
): CloudResource | undefined {
  const here = testbed
    .all(type)
    .filter(({ region }) => !model.regionalIds || region === 'global' || region === testbed.region);
  const kind = model.types.get(type);
  return (
    here.find((one) => model.isCalled(one, handle)) ??
    here.find((one) => kind?.aliases?.(one).includes(handle)) ??
    here.find(({ name }) => name === handle)
  );
}
