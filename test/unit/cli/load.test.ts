import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { main } from '../../../operator/cli/main.ts';
import { createTerminal } from '../../../operator/cli/terminal.ts';
import { chooseRanges } from '../../../operator/garden/host/ranges.ts';
import { StateDirectory } from '../../../operator/garden/state/state.ts';

it('load warns in a garden with simulated nodes, which cannot use an image', async () => {
  const home = await mkdtemp(join(tmpdir(), 'coppice-load-'));
  try {
    const directory = new StateDirectory(home);
    await directory.make();
    const ports = { apiserver: 1, etcd: 2, etcdPeer: 3 };
    const ranges = chooseRanges(directory.id, [])!;
    await directory.write({ id: directory.id, createdAt: '', ports, ranges, seed: 'local', rootless: true });
    await writeFile(join(home, 'app.tar'), '');
    let said = '';
    const write = (text: string) => {
      said += text;
    };
    const terminal = createTerminal({ out: { write }, err: { write }, env: {} });
    const env = { COPPICE_HOME: home, HOME: home };
    expect(await main(['load', join(home, 'app.tar')], terminal, env, new AbortController().signal)).toBe(1);
    expect(said).toContain('nodes are simulated in a garden without root, and run no pods');
  } finally {
    await rm(home, { recursive: true });
  }
});
