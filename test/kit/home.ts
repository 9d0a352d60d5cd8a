import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isAlive, ownIdentity, type ProcessIdentity } from '../../operator/garden/host/process-identity.ts';
import { runCoppice } from './run.ts';

const PREFIX = 'coppice-e2e-garden-';
const OWNER = 'owner.json';

/** A new state directory (COPPICE_HOME) of this test run. */
export async function makeHome(): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), PREFIX));
  await writeFile(join(home, OWNER), JSON.stringify(await ownIdentity()));
  return home;
}

/** Takes down gardens of test runs that were killed before they could do it themselves. */
export async function sweepHomes(tools: string): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    if (!name.startsWith(PREFIX)) continue;
    const home = join(tmpdir(), name);
    const text = await readFile(join(home, OWNER), 'utf8').catch(() => undefined);
    if (text === undefined || (await isAlive(JSON.parse(text) as ProcessIdentity))) continue;
    process.stderr.write(`e2e: taking down ${home}, which a test run that was killed has left\n`);
    const { code } = await runCoppice(['down', '--leave-clouds'], { home, tools, timeoutMs: 5 * 60_000 });
    if (code === 0) await rm(home, { recursive: true, force: true });
  }
}
