import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { BURSTPOLICIES, HUBS, WORKERCLUSTERS } from '../../operator/kube/resources.ts';
import { e2e, gardenClient } from '../kit/garden.ts';
import type { Shell } from '../kit/transcripts/shell.ts';
import { openShell, PAGES, ROOT, walk } from '../kit/transcripts/walk.ts';

/** What a page shows has come by then: a limit for each output. */
const PATIENCE_MS = 120_000;

/** What `npm start`, `npm test`, `coppice demo burst` and `coppice down` do is tested where ELSEWHERE says. */
e2e('the first pages of the docs', () => {
  let folder: string;
  let shell: Shell;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'coppice-pages-'));
    const kubeconfig = join(folder, 'config');
    shell = openShell({ home: inject('home'), tools: inject('tools'), kubectl: inject('kubectl'), kubeconfig });
  });
  afterAll(async () => {
    await shell?.end();
    await rm(folder, { recursive: true, force: true });
  });

  it.each(PAGES)('can be followed: the commands of %s work and print what it shows', async (name) => {
    const page = await readFile(join(ROOT, name), 'utf8');
    await walk(page, shell, ({ output, line }, look) =>
      expect.poll(look, { timeout: PATIENCE_MS, message: `${name}, line ${line}` }).toBe(output),
    );
  });

  it('end cleanly: docs/getting-started.md deletes what it created', async () => {
    const left = await Promise.all(
      [WORKERCLUSTERS, BURSTPOLICIES, HUBS].map(async (kind) => (await gardenClient().list(kind)).items),
    );
    expect(left.flat().map(({ metadata }) => metadata.name)).toEqual(['inventory']);
  });
});
