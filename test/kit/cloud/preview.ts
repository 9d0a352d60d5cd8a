import type { Caller, CloudModel, CloudResource, Properties, ResourceType, Testbed } from './model.ts';
import { UNKNOWN } from './property-values.ts';

const isPlain = (value: unknown): value is Properties =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Whatever the cloud will add to the inputs, however deep, as not known yet. */
function withUnknowns(inputs: Properties, outputs: Properties): Properties {
  const added = Object.entries(outputs).map(([name, value]) => {
    const given = inputs[name];
    if (isPlain(given) && isPlain(value)) return [name, withUnknowns(given, value)];
    return [name, given === undefined ? UNKNOWN : given];
  });
  return { ...inputs, ...Object.fromEntries(added) };
}

/** What a create would give, as far as that can be told without making anything. */
export function plannedCreate(model: CloudModel, type: ResourceType, inputs: Properties): Properties {
  const caller: Caller = { account: '', principal: '', region: '', defaultTags: {} };
  const resource: CloudResource = {
    uid: '0'.repeat(32),
    cloud: model.name,
    account: '',
    region: '',
    type: type.type,
    id: '',
    name: '',
    inputs,
    defaultTags: {},
    facts: {},
    createdAt: 0,
    readyAt: 0,
    generation: 1,
  };
  const nothing: Testbed = {
    caller,
    region: '',
    now: 0,
    all: () => [],
    find: () => undefined,
    outputs: () => ({}),
    endpoint: () => undefined,
  };
  const { id: _, ...outputs } = { ...model.commonOutputs(resource, nothing), ...type.outputs(resource, nothing) };
  return withUnknowns(inputs, outputs);
}

/** What an update would give: what was there, changed as asked for. */
export function plannedUpdate(outputs: Properties, inputs: Properties): Properties {
  const changed = Object.entries(inputs).map(([name, value]) => {
    const before = outputs[name];
    return [name, isPlain(before) && isPlain(value) ? plannedUpdate(before, value) : value];
  });
  return { ...outputs, ...Object.fromEntries(changed) };
}
