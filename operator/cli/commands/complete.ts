import { NAMESPACES } from '../../kube/resources.ts';
import type { CommandModule, CommandTable } from '../command.ts';
import { completionsFor } from '../completion.ts';
import { connect } from '../connect.ts';
import { type Context, Options } from '../context.ts';
import { parse } from '../parse.ts';

/** By then the person has typed the word. */
const PATIENCE_MS = 1500;

/** `coppice __complete -- WORD...`: candidates for the last word, one per line. Never fails. */
export const completionOf = (table: CommandTable): CommandModule => ({ run: (context) => complete(context, table) });

async function complete(context: Context, table: CommandTable): Promise<undefined> {
  const { positionals, terminal } = context;
  const wanted = completionsFor(positionals, table.commands, table.globals);
  if (wanted.what === 'files') {
    terminal.print(':files');
    return;
  }
  const words = 'words' in wanted ? [...wanted.words] : [];
  if (wanted.what !== 'words') {
    try {
      const options = optionsTyped(positionals, table);
      const { client, namespace } = await connect({ options, env: context.env });
      const resource = wanted.what === 'namespaces' ? NAMESPACES : wanted.kind.resource;
      const signal = AbortSignal.any([context.signal, AbortSignal.timeout(PATIENCE_MS)]);
      const list = await client.list(resource, { namespace: resource.namespaced ? namespace : undefined, signal });
      words.push(...list.items.map((object) => object.metadata.name));
    } catch {
      // Completion must not print errors.
    }
  }
  if (words.length > 0) terminal.print(...words);
}

function optionsTyped(words: readonly string[], { commands, globals }: CommandTable): Options {
  // The line is unfinished: require no argument yet.
  const unfinished = commands.map((command) => ({
    ...command,
    positionals: command.positionals.map((positional) => ({ ...positional, required: false })),
  }));
  try {
    return new Options(parse(words.slice(0, -1), unfinished, globals).options);
  } catch {
    return new Options({});
  }
}
