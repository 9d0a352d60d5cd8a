/**
 * `npm run generate:transcripts`: writes the outputs that README and Getting started show, and the recording of a peak, from one run in a
 * garden of its own. It takes about 8 minutes, and needs root. An argument `pages` or `recording` does only that.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { bringUpGarden, type SharedGarden } from '../garden-setup.ts';
import { COPPICE, owned, runCommand } from '../run.ts';
import { drawRecording, type Said } from './recording.ts';
import { stepsOf, withOutputs } from './steps.ts';
import { openShell, PAGES, ROOT, walk } from './walk.ts';

const RECORDING = 'docs/demo-burst.svg';
/** An output is settled when it is the same after this. */
const SETTLED_MS = 5_000;
/** How often it is looked at before it is given up: something in it is not masked. */
const LOOKS = 24;

async function settled(look: () => Promise<string>): Promise<string> {
  let before = await look();
  for (let looks = 1; looks < LOOKS; looks++) {
    await setTimeout(SETTLED_MS);
    const now = await look();
    if (now === before) return now;
    before = now;
  }
  throw new Error(`the output changes without end:\n${before}`);
}

async function writePages(garden: SharedGarden): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'coppice-transcripts-'));
  const shell = openShell({ ...garden, kubeconfig: join(folder, 'config') });
  try {
    for (const name of PAGES) {
      const page = await readFile(join(ROOT, name), 'utf8');
      if (stepsOf(page).every(({ output }) => output === undefined)) continue;
      const outputs: string[] = [];
      await walk(page, shell, async ({ line }, look) => {
        outputs.push(await settled(look));
        console.log(`${name}:${line}`);
      });
      await writeFile(join(ROOT, name), withOutputs(page, outputs));
      console.log(`${name}: ${outputs.length} outputs`);
    }
  } finally {
    await shell.end();
    await rm(folder, { recursive: true, force: true });
  }
}

async function writeRecording({ home, tools }: SharedGarden): Promise<void> {
  const args = ['demo', 'burst'];
  const result = await runCommand(COPPICE, args, { ...owned({ home, tools }), timeoutMs: 15 * 60_000 });
  if (result.code !== 0) throw new Error(`coppice demo burst failed: ${result.stderr}${result.stdout}`);
  const said: Said[] = [{ second: 0, text: '$ coppice demo burst' }];
  for (const text of result.stdout.trimEnd().split('\n')) {
    const [, minutes = '0', seconds = '0'] = /^\[ *(?:(\d+)m)?(\d+)s\] /.exec(text) ?? [];
    said.push({ second: Number(minutes) * 60 + Number(seconds), text });
  }
  const title =
    'coppice demo burst: a full cluster gets a second node, then a second cluster, which is deleted after the peak';
  await writeFile(
    join(ROOT, RECORDING),
    drawRecording(
      title,
      said.filter(({ text }) => !/\] waiting for /.test(text)),
    ),
  );
  console.log(`${RECORDING}: ${said.length} lines, ${said.at(-1)!.second} s`);
}

const [, , only] = process.argv;
const { garden, takeDown } = await bringUpGarden();
try {
  if (garden.noGarden !== undefined) throw new Error(garden.noGarden);
  if (only !== 'recording') await writePages(garden);
  if (only !== 'pages') await writeRecording(garden);
} finally {
  await takeDown?.();
}
