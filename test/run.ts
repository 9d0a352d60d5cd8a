/**
 * `npm test`: every tier, the end-to-end tests beside the others. Each waits for processes most of the time, and one after the other
 * they take more than an hour of two cores. The end-to-end tests are the longer half and go first where both want a core.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type Counts, summaryLine } from './kit/counts.ts';
import { testTools } from './kit/tools.ts';

const VITEST = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url));
const RESULTS = 'test-results';
/** What is built where it cannot be had otherwise, in the order in which it is needed. */
const NEEDED = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'pause',
  'kubelet',
  'kube-proxy',
  'coredns',
  'kubectl',
  'kwok',
  'pulumi',
  'echo',
  'etcdctl',
  'etcdutl',
  'kubeadm',
  'proxy-server',
  'proxy-agent',
] as const;
/** Of what is not urgent. */
const NICE = 5;

/** Files or options of `npm test -- ...`: then nothing is gained by two runs, of which one may have no file. */
const chosen = process.argv.slice(2);
const running: ChildProcess[] = [];

/** What the tiers' tests came to. A run that ends without having counted them is a failure. */
async function run(name: string, projects: readonly string[], nice = 0): Promise<Counts> {
  const file = `${RESULTS}/${name}.json`;
  writeFileSync(file, JSON.stringify({ passed: 0, failed: 1, skipped: 0 } satisfies Counts));
  const args = [VITEST, 'run', ...projects.flatMap((project) => ['--project', project]), ...chosen];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, COPPICE_TEST_COUNTS: file },
  });
  running.push(child);
  if (nice > 0 && child.pid !== undefined) setPriority(child.pid, nice);
  // By lines: of two that write at once neither reads.
  createInterface({ input: child.stdout! }).on('line', (line) => process.stdout.write(`${line}\n`));
  createInterface({ input: child.stderr! }).on('line', (line) => process.stderr.write(`${line}\n`));
  const [code] = (await once(child, 'close').catch((error: Error) => {
    console.error(`tests: ${name} cannot be run: ${error.message}`);
    return [1];
  })) as [number | null];
  const counts = JSON.parse(readFileSync(file, 'utf8')) as Counts;
  // For example a garden that did not come down.
  return code !== 0 && counts.failed === 0 ? { ...counts, failed: 1 } : counts;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    for (const child of running) child.kill(signal);
  });
}

mkdirSync(RESULTS, { recursive: true });
// One after the other, and not within anybody's time: both halves need them, and one that waits for the other's builds may run out of its own.
if (chosen.length === 0) {
  await testTools(...NEEDED).catch((error: Error) => console.error(`tests: tools cannot be made: ${error.message}`));
}
const tiers =
  chosen.length > 0
    ? [await run('chosen', [])]
    : await Promise.all([run('e2e', ['e2e']), run('unit-integration', ['unit', 'integration'], NICE)]);
const line = summaryLine(tiers);
writeFileSync(`${RESULTS}/summary.txt`, `${line}\n`);
console.log(line);
process.exitCode = tiers.some(({ failed }) => failed > 0) ? 1 : 0;
