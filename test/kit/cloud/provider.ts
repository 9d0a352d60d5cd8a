import { type Difference, difference, named } from './check-and-diff.ts';
import type { CloudModel, Properties } from './model.ts';
import { type Answer, type Operations, typeOf } from './operations.ts';
import { plannedCreate, plannedUpdate } from './preview.ts';

/** What an engine asks of a provider, whichever way it asks. Tokens are Pulumi's; properties are without marks where nothing else is said. */
export interface CloudProvider {
  /** The program's inputs with what is filled in; marks stay. `digits` are hexadecimal and random. */
  check(token: string, name: string, inputs: Properties, before: Properties, digits: string): Properties;
  diff(token: string, before: Properties, after: Properties): Difference;
  create(token: string, name: string, inputs: Properties): Promise<Answer>;
  /** What a create would give, as far as that can be told. */
  planCreate(token: string, inputs: Properties): Properties;
  /** Undefined: there is none. `known` and `inputs` are what the state has of it. */
  read(token: string, id: string, known: Properties, inputs: Properties): Promise<Answer | undefined>;
  update(token: string, id: string, known: Properties, inputs: Properties): Promise<Answer>;
  planUpdate(known: Properties, inputs: Properties): Properties;
  delete(token: string, id: string, known: Properties): Promise<void>;
  invoke(token: string, args: Properties): Promise<Properties>;
  /** Outputs that must be kept secret. */
  secrets(token: string): readonly string[];
}

/** The provider over a cloud's operations. */
export function createProvider(model: CloudModel, operations: Operations): CloudProvider {
  return {
    ...operations,
    check: (token, name, inputs, before, digits) => named(model, typeOf(model, token), name, inputs, before, digits),
    diff: (token, before, after) => difference(typeOf(model, token), before, after),
    planCreate: (token, inputs) => plannedCreate(model, typeOf(model, token), inputs),
    async read(token, id, known, inputs) {
      const found = await operations.read(token, id, known);
      const keeps = model.keepsInputsWhenRead && Object.keys(known).length === 0;
      return found && { ...found, inputs: { ...(keeps && inputs), ...found.inputs } };
    },
    planUpdate: plannedUpdate,
    secrets: (token) => typeOf(model, token).secrets ?? [],
  };
}
