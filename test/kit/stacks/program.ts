import * as pulumi from '@pulumi/pulumi';
import resourceMessages from '@pulumi/pulumi/proto/resource_pb.js';
import { MockMonitor } from '@pulumi/pulumi/runtime/mocks.js';
import * as localState from '@pulumi/pulumi/runtime/state.js';
import { PROJECT } from '../../../providers/pulumi/project.ts';
import { STACK_TYPE } from '../../../providers/pulumi/stack-state.ts';
import type { Properties } from '../cloud/model.ts';
import { marked, plain, strip, toStruct } from '../cloud/property-values.ts';

/** A resource as a program asks for it. Properties bear Pulumi's marks of what is secret or not known yet. */
export interface Registration {
  urn: string;
  type: string;
  name: string;
  /** Whether a provider manages it. */
  custom: boolean;
  parent?: string;
  inputs: Properties;
  dependencies: string[];
  ignoreChanges: string[];
  replaceOnChanges: string[];
  /** Absent: as the provider says. */
  deleteBeforeReplace?: boolean;
  retainOnDelete: boolean;
  deletedWith?: string;
}

/** What stands behind a program, in the engine's place. A promise that never settles stops who waits for it, as an engine that ends does. */
export interface Monitor {
  /** Resolves to what is known of it: without an id while it is only planned. */
  register(wanted: Registration): Promise<{ id?: string; outputs: Properties }>;
  invoke(token: string, args: Properties): Promise<Properties>;
  /** What a component, such as the stack, gives back. */
  outputs(urn: string, outputs: Properties): void;
}

type Reply = (error: unknown, response?: unknown) => void;

const urnOf = (stack: string, parent: string, type: string, name: string): string => {
  const above = parent.split('::')[2] ?? '';
  const types = above === '' || above === STACK_TYPE ? type : `${above}$${type}`;
  return `urn:pulumi:${stack}::${PROJECT}::${types}::${name}`;
};

/** Pulumi's own monitor for tests says what an engine can do; what is to be done goes on to ours. */
class ForwardingMonitor extends MockMonitor {
  readonly #stack: string;
  readonly #monitor: Monitor;

  constructor(stack: string, monitor: Monitor) {
    const unused = () => {
      throw new Error('not reached: requests go to the run');
    };
    super({ call: unused, newResource: unused });
    this.#stack = stack;
    this.#monitor = monitor;
  }

  override async registerResource(request: any, reply: Reply): Promise<void> {
    const [type, name, parent] = [request.getType(), request.getName(), request.getParent()];
    const urn = urnOf(this.#stack, parent, type, name);
    const { id = '', outputs } = await this.#monitor.register({
      urn,
      type,
      name,
      custom: request.getCustom(),
      ...(parent && { parent }),
      inputs: marked(request.getObject()),
      dependencies: request.getDependenciesList(),
      ignoreChanges: request.getIgnorechangesList(),
      replaceOnChanges: request.getReplaceonchangesList(),
      ...(request.getDeletebeforereplacedefined() && { deleteBeforeReplace: request.getDeletebeforereplace() }),
      retainOnDelete: request.getRetainondelete() ?? false,
      ...(request.getDeletedwith() && { deletedWith: request.getDeletedwith() }),
    });
    const response = new resourceMessages.RegisterResourceResponse();
    response.setUrn(urn);
    response.setId(id);
    response.setObject(toStruct(outputs));
    reply(null, response);
  }

  override readResource(_: any, reply: Reply): Promise<void> {
    reply(new Error('this engine of tests does not read resources of others: use the real one'));
    return Promise.resolve();
  }

  override async invoke(request: any, reply: Reply): Promise<void> {
    try {
      const result = await this.#monitor.invoke(request.getTok(), plain(request.getArgs()));
      const response = new resourceMessages.ResourceInvokeResponse();
      response.setReturn(toStruct(result));
      reply(null, response);
    } catch (error) {
      // gRPC's errors have their text there.
      reply(Object.assign(error as Error, { details: (error as Error).message }));
    }
  }

  override registerResourceOutputs(request: any, reply: Reply): void {
    this.#monitor.outputs(request.getUrn(), marked(request.getOutputs()));
    reply(null, {});
  }
}

/**
 * Pulumi notes for every promise and resource where in the program it came from, and nobody reads it here: with source maps that
 * would be half of the time of a run.
 */
function withoutStacksOfPrograms(): void {
  const before = Error.prepareStackTrace?.bind(Error);
  Error.prepareStackTrace = (error, frames) => {
    if (globalThis.asyncLocalStorage?.getStore()) return String(error);
    return before ? before(error, frames) : [String(error), ...frames].join('\n    at ');
  };
}
withoutStacksOfPrograms();

/** Runs a program to its end in this process, with Pulumi's SDK and without its engine. Rejects with what the program throws. */
export function runProgram(
  program: () => unknown,
  { stack, isPlan }: { stack: string; isPlan: boolean },
  monitor: Monitor,
): Promise<void> {
  const { withLocalStorage } = localState as unknown as { withLocalStorage: <T>(work: () => T) => T };
  return withLocalStorage(async () => {
    pulumi.runtime.setMockOptions(new ForwardingMonitor(stack, monitor), PROJECT, stack, isPlan);
    let failure: { error: unknown } | undefined;
    await pulumi.runtime.runInPulumiStack(async () => {
      // Thrown through Pulumi, the error would also be an unhandled rejection.
      try {
        return await program();
      } catch (error) {
        failure = { error };
        return {};
      }
    });
    // Outputs may be there before the last resources are.
    await pulumi.runtime.disconnect();
    if (failure) throw failure.error;
  });
}

/** Properties with all secrets in the clear. */
export const inTheClear = (properties: Properties = {}): Properties => strip(properties) as Properties;
