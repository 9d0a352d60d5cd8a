import { readFile } from 'node:fs/promises';
import { connect } from '../connect.ts';
import type { Context } from '../context.ts';
import { explain } from '../errors.ts';
import { printObject } from '../output.ts';

const SERVER_MS = 3000;

/** `coppice version`. A server that does not answer is reported and is no failure. */
export async function run(context: Context): Promise<undefined> {
  const { options, terminal, signal } = context;
  const { version } = JSON.parse(await readFile(new URL('../../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  const result: { client: string; node: string; server?: string } = { client: `v${version}`, node: process.version };
  let remark = '';
  if (!options.flag('client')) {
    try {
      const { client } = await connect(context);
      const info = await client.request<{ gitVersion: string }>('GET', '/version', {
        signal: AbortSignal.any([signal, AbortSignal.timeout(SERVER_MS)]),
        retries: 0,
      });
      result.server = info.gitVersion;
    } catch (error) {
      signal.throwIfAborted();
      remark = explain(error).message;
    }
  }
  const format = options.text('output');
  if (format === 'json' || format === 'yaml') {
    await printObject(terminal, format, result);
    return;
  }
  terminal.print(`coppice ${result.client} (node ${result.node})`);
  if (result.server !== undefined) terminal.print(`API server ${result.server} (Kubernetes)`);
  else if (remark !== '') terminal.note(`No API server: ${remark}`);
}
