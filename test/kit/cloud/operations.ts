import { randomBytes } from 'node:crypto';
import { askForEndpoint, leaveEndpoint } from './endpoints.ts';
import { forType, isDepleted, readFaults } from './faults.ts';
import { type Admitted, CloudError, createGate, type PluginHost } from './gate.ts';
import {
  type Attempt,
  type Caller,
  type CloudModel,
  type CloudResource,
  type Draft,
  type Properties,
  type ResourceType,
  type Settings,
  shortType,
  type Testbed,
} from './model.ts';
import type { Store } from './store.ts';
import { findResource, openTestbed } from './testbed.ts';

/** A resource as Pulumi gets it. */
export interface Answer {
  id: string;
  outputs: Properties;
  inputs: Properties;
}

/** The cloud has made or changed it, but not as asked for; Pulumi learns of it by this error. */
export class PartialFailure extends Error {
  override readonly name = 'PartialFailure';
  readonly answer: Answer;

  constructor(message: string, answer: Answer) {
    super(message);
    this.answer = answer;
  }
}

/** What a provider plugin does to the cloud. Tokens are Pulumi's; names are logical names of the program. */
export interface Operations {
  create(token: string, name: string, inputs: Properties): Promise<Answer>;
  /** Undefined: there is none, or not yet one that can be read. */
  read(token: string, id: string, known: Properties): Promise<Answer | undefined>;
  update(token: string, id: string, known: Properties, inputs: Properties): Promise<Answer>;
  delete(token: string, id: string, known: Properties): Promise<void>;
  invoke(token: string, args: Properties): Promise<Properties>;
}

export const typeOf = (model: CloudModel, token: string): ResourceType =>
  model.types.get(shortType(token)) ?? model.unknownType(shortType(token));

/** The cloud's side of the plugin. */
export function createOperations(
  model: CloudModel,
  store: Store,
  settings: () => Settings,
  host: PluginHost,
): Operations {
  const gate = createGate(model, store, settings, host);
  const regionOf = (type: ResourceType, inputs: Properties): string =>
    type.global ? 'global' : (type.region?.(inputs) ?? inputs.region ?? settings().region);
  const testbedFor = (caller: Caller, region: string): Testbed => openTestbed(model, store, caller, region, host.now());
  const answer = (resource: CloudResource, testbed: Testbed): Answer => ({
    id: resource.id,
    outputs: testbed.outputs(resource),
    inputs: resource.inputs,
  });
  const until = async (time: number): Promise<void> => {
    if (time > host.now()) await host.sleep(time - host.now());
  };

  /** Waits as the real provider polls; what goes wrong from here on leaves something behind. */
  async function settle({ attempt, done }: Admitted, resource: CloudResource): Promise<Answer> {
    const partial = (message: string): never => {
      throw new PartialFailure(message, answer(resource, testbedFor(attempt.caller, resource.region)));
    };
    try {
      await until(resource.readyAt);
    } catch (error) {
      partial((error as Error).message);
    }
    if (resource.failure !== undefined) partial(resource.failure);
    await done(partial);
    return answer(resource, testbedFor(attempt.caller, resource.region));
  }

  /** What stands in the way of a resource with these inputs. Throws; gives the text of what goes wrong only later. */
  function judge(type: ResourceType, attempt: Attempt, inputs: Properties, testbed: Testbed, before?: CloudResource) {
    for (const reference of type.references?.(inputs) ?? []) {
      if (reference.required !== false && !testbed.find(reference.type, reference.handle)) {
        throw new CloudError(model.errors.missing(attempt, reference));
      }
    }
    const refusal = type.refuse?.({ before, after: inputs }, testbed);
    if (refusal) throw new CloudError(model.errors.refused(attempt, refusal));
    const machines = type.machines?.(inputs, testbed);
    const had = before ? (type.machines?.(before.inputs, testbed)?.count ?? 0) : 0;
    if (!machines || machines.count <= had) return undefined;
    const faults = readFaults(store);
    const left = machines.zones.some((zone) =>
      machines.types.some((machineType) => !isDepleted(faults, { machineType, zone, spot: machines.spot })),
    );
    return left ? undefined : model.errors.depleted(attempt, machines);
  }

  async function insert(
    type: ResourceType,
    { attempt, latencyMs }: Admitted,
    inputs: Properties,
  ): Promise<CloudResource> {
    const { caller, region } = attempt;
    const testbed = testbedFor(caller, region);
    const key = type.uniqueBy?.(inputs, region);
    const all = store.list(host.now()).filter((one) => one.type === type.type && one.account === caller.account);
    const peers = all.filter((one) => one.region === region);
    const namesake =
      key === undefined
        ? undefined
        : (model.regionalIds ? peers : all).find((one) => type.uniqueBy?.(one.inputs, one.region) === key);
    if (namesake && type.idempotent) return namesake;
    if (namesake) throw new CloudError(model.errors.exists(attempt, namesake.id));
    const quota = forType(readFaults(store).quotas, type.type);
    if (quota !== undefined && peers.length >= quota) throw new CloudError(model.errors.quota(attempt, quota));
    const failure = judge(type, attempt, inputs, testbed);
    const now = host.now();
    const draft: Draft = {
      uid: randomBytes(16).toString('hex'),
      cloud: model.name,
      account: caller.account,
      region,
      type: type.type,
      name: type.nameInput === undefined ? '' : String(inputs[type.nameInput]),
      inputs,
      defaultTags: caller.defaultTags,
      createdAt: now,
      readyAt: now + latencyMs,
      generation: 1,
      ...(failure === undefined ? {} : { failure }),
    };
    const id = type.id(draft);
    const facts = (await type.facts?.(draft)) ?? {};
    const resource: CloudResource = { ...draft, name: draft.name === '' ? id : draft.name, id, facts };
    store.put(resource);
    return resource;
  }

  return {
    create(token, logicalName, inputs) {
      const type = typeOf(model, token);
      const name = String(inputs[type.nameInput ?? ''] ?? logicalName);
      const attempt = { operation: 'create', type: type.type, name, region: regionOf(type, inputs) } as const;
      return gate.request(attempt, async (admitted) => {
        const resource = await store.transaction(() => insert(type, admitted, inputs));
        if (type.cluster) await askForEndpoint(store, resource);
        return settle(admitted, resource);
      });
    },

    read(token, given, known) {
      const type = typeOf(model, token);
      const [id, place] = model.regionalIds ? given.split(/@(?=[a-z]{2}-[a-z-]+-\d$)/) : [given];
      const region = regionOf(type, { ...(place && { region: place }), ...known });
      const attempt = { operation: 'read', type: type.type, name: id!, region } as const;
      return gate.request(attempt, async ({ attempt: { caller }, latencyMs }) => {
        await until(host.now() + latencyMs);
        const testbed = testbedFor(caller, region);
        const resource = findResource(model, testbed, type.type, id!);
        return resource && answer(resource, testbed);
      });
    },

    update(token, id, known, inputs) {
      const type = typeOf(model, token);
      const attempt = { operation: 'update', type: type.type, name: id, region: regionOf(type, known) } as const;
      return gate.request(attempt, async (admitted) => {
        const { caller, region } = admitted.attempt;
        const resource = await store.transaction(() => {
          const testbed = testbedFor(caller, region);
          const before = findResource(model, testbed, type.type, id);
          if (!before) throw new CloudError(model.errors.gone(attempt));
          const failure = judge(type, admitted.attempt, inputs, testbed, before);
          const { failure: _, ...rest } = before;
          const after: CloudResource = {
            ...rest,
            inputs,
            defaultTags: caller.defaultTags,
            generation: before.generation + 1,
            readyAt: host.now() + admitted.latencyMs,
            ...(failure === undefined ? {} : { failure }),
          };
          store.put(after);
          return after;
        });
        return settle(admitted, resource);
      });
    },

    delete(token, id, known) {
      const type = typeOf(model, token);
      const attempt = { operation: 'delete', type: type.type, name: id, region: regionOf(type, known) } as const;
      return gate.request(attempt, async ({ attempt: { caller, region }, latencyMs, done }) => {
        const goneAt = host.now() + latencyMs;
        const doomed = await store.transaction(() => {
          const testbed = testbedFor(caller, region);
          const resource = findResource(model, testbed, type.type, id);
          if (!resource) return [];
          const refusal = type.refuse?.({ before: resource }, testbed);
          if (refusal) throw new CloudError(model.errors.refused(attempt, refusal));
          const all = withDependents(resource, attempt, testbed);
          for (const one of all)
            store.put(typeOf(model, one.type).permanent ? { ...one, retired: true } : { ...one, goneAt });
          return all.filter((one) => !typeOf(model, one.type).permanent);
        });
        await until(goneAt);
        for (const one of doomed) {
          store.remove(one);
          if (typeOf(model, one.type).cluster) await leaveEndpoint(store, one);
        }
        await done((message) => {
          throw new CloudError(message);
        });
      });
    },

    invoke(token, args) {
      const region = String(args.region ?? args.location ?? settings().region);
      const attempt = { operation: 'invoke', type: shortType(token), name: '', region } as const;
      return gate.request(attempt, async ({ attempt: { caller } }) => {
        const lookup = model.lookups[shortType(token)];
        if (!lookup)
          throw new CloudError(`the fake ${model.name} does not know the function ${token}: add it to lookups.ts`);
        const testbed = testbedFor(caller, region);
        const result = lookup(args, testbed);
        if (!result) throw new CloudError(model.errors.gone({ ...attempt, name: JSON.stringify(args) }));
        return result;
      });
    },
  };

  /** The resource and what ends with it. Throws if something needs it. */
  function withDependents(resource: CloudResource, attempt: Attempt, testbed: Testbed): CloudResource[] {
    const doomed = [resource];
    for (const one of doomed) {
      for (const other of testbed.all()) {
        if (doomed.some(({ uid }) => uid === other.uid)) continue;
        const reference = typeOf(model, other.type)
          .references?.(other.inputs)
          .find(
            (candidate) => candidate.type === one.type && testbed.find(one.type, candidate.handle)?.uid === one.uid,
          );
        if (!reference || reference.onDelete === 'ignore') continue;
        if (reference.onDelete !== 'cascade') throw new CloudError(model.errors.inUse(attempt, one.id, other));
        doomed.push(other);
      }
    }
    return doomed;
  }
}
