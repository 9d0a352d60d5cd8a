import * as pulumi from '@pulumi/pulumi';
import type { Program } from '../../providers/pulumi/program.ts';

/** A resource as a program declared it. A reference to another resource is its id, `<vpc.id>`. */
export interface Declared {
  type: string;
  name: string;
  inputs: Record<string, any>;
  /** Options that Pulumi keeps to itself. */
  options: Pick<
    pulumi.CustomResourceOptions,
    'ignoreChanges' | 'deleteBeforeReplace' | 'protect' | 'retainOnDelete'
  > & {
    dependsOn: string[];
  };
}

/** What a program declares and gives back. */
export interface Graph {
  /** By type and name. */
  resources: Declared[];
  outputs: Record<string, any>;
  /** The one resource of this type and name; throws when there is none. */
  one(type: string, name?: string): Declared;
  all(type: string): Declared[];
}

/** What the cloud would answer, where a program needs more than ids. */
export interface Answers {
  /** Outputs of a resource besides its inputs. */
  outputs?: (resource: pulumi.runtime.MockResourceArgs) => Record<string, unknown>;
  /** Result of a look-up such as `aws:index/getCallerIdentity:getCallerIdentity`. */
  call?: (token: string, inputs: any) => Record<string, unknown>;
}

/** Runs a program against Pulumi's mocks: ids are `<name.id>`, nothing leaves the process. Rejects when the program fails. */
export async function graphOf<Inputs>(program: Program<Inputs>, inputs: Inputs, answers: Answers = {}): Promise<Graph> {
  const resources: Declared[] = [];
  const options = new Map<string, Declared['options']>();
  await pulumi.runtime.setMocks(
    {
      call: ({ token, inputs: asked }) => answers.call?.(token, asked) ?? {},
      newResource: (args) => {
        const key = `${args.type} ${args.name}`;
        if (args.type.includes(':') && !args.type.startsWith('pulumi:')) {
          resources.push({
            type: args.type,
            name: args.name,
            inputs: args.inputs,
            options: options.get(key) ?? { dependsOn: [] },
          });
        }
        return { id: `<${args.name}.id>`, state: { ...args.inputs, ...answers.outputs?.(args) } };
      },
    },
    'coppice',
    'test',
  );
  let failure: { error: unknown } | undefined;
  const outputs = await pulumi.runtime.runInPulumiStack(async () => {
    pulumi.runtime.registerStackTransformation(({ type, name, opts }) => {
      const { ignoreChanges, deleteBeforeReplace, protect, retainOnDelete, dependsOn } =
        opts as pulumi.CustomResourceOptions;
      options.set(`${type} ${name}`, {
        ...(ignoreChanges && { ignoreChanges }),
        ...(deleteBeforeReplace !== undefined && { deleteBeforeReplace }),
        ...(protect !== undefined && { protect }),
        ...(retainOnDelete !== undefined && { retainOnDelete }),
        dependsOn: [dependsOn ?? []].flat().map((other) => (other as unknown as { __name: string }).__name),
      });
      return undefined;
    });
    // Thrown through Pulumi, the error would also be an unhandled rejection.
    try {
      return await program(inputs);
    } catch (error) {
      failure = { error };
      return {};
    }
  });
  // The program's outputs may be there before its last resources are: these would land in the next test's graph.
  await pulumi.runtime.disconnect();
  if (failure) throw failure.error;
  // Resources are declared in one order and registered in any.
  resources.sort((a, b) => `${a.type} ${a.name}`.localeCompare(`${b.type} ${b.name}`));
  return {
    resources,
    outputs: outputs as Record<string, any>,
    one: (type, name) => {
      const found = resources.filter((known) => known.type === type && (name === undefined || known.name === name));
      if (found.length !== 1) throw new Error(`${found.length} resources ${type} ${name ?? ''}`);
      return found[0]!;
    },
    all: (type) => resources.filter((known) => known.type === type),
  };
}
