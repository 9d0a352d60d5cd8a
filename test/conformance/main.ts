/** `npm run test:conformance`: Kubernetes' own conformance tests, against a local cluster in a garden of their own. */
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { whyNoNodes } from '../../operator/garden/host/capabilities.ts';
import { toolImage } from '../../operator/garden/images/catalog.ts';
import { toolsDirectory } from '../../operator/garden/toolchain/cache.ts';
import { Toolchain } from '../../operator/garden/toolchain/toolchain.ts';
import { bringUpGarden, narrate } from '../kit/garden-setup.ts';
import { runCommand } from '../kit/run.ts';
import { makeCluster } from './cluster.ts';
import { EXCLUSIONS, faultsOf, listedTests } from './exclusions.ts';
import { runGroup } from './group.ts';
import { makeTestImages, unknownImages } from './images.ts';
import { type Options, parseOptions, USAGE } from './options.ts';
import { tellProgress } from './progress.ts';
import { resultsOf, summaryOf } from './report.ts';

const RESULTS = fileURLToPath(new URL('../../test-results/conformance', import.meta.url));
/** After its own limit ginkgo ends tests and tidies up; then it is ended. */
const GRACE_MS = 5 * 60_000;

const began = performance.now();
const say = (text: string) =>
  process.stderr.write(`conformance: ${Math.round((performance.now() - began) / 1000)} s: ${text}\n`);

interface Programs {
  'e2e.test': string;
  ginkgo: string;
  kubectl: string;
}

/** Regular expression of exactly these names, as ginkgo has them: after that of the suite. */
const exactly = (names: readonly string[]): string =>
  `(?:^| )(?:${names.map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|')})$`;

/** Throws where tables of ours say what this version of Kubernetes does not. @returns the names of all conformance tests */
async function checked(program: string): Promise<Set<string>> {
  const ask = async (flag: string) => (await runCommand(program, [flag])).stdout;
  const listed = listedTests(await ask('--list-tests'));
  const faults = [
    ...faultsOf(EXCLUSIONS, listed),
    ...unknownImages(await ask('--list-images')).map((ref) => `Kubernetes' tests do not use the image ${ref}`),
  ];
  if (faults.length > 0) throw new Error(faults.join('; '));
  return listed;
}

/** Runs the tests to their end, or to the limit. What they say goes into a file. */
async function runTests(programs: Programs, kubeconfig: string, options: Options, interrupted: AbortSignal) {
  const progress = tellProgress(say);
  const skip = EXCLUSIONS.map(({ test }) => test);
  const args = [
    ...[`--procs=${options.parallel}`, `--timeout=${options.limit}m`, '--no-color', '--label-filter=Conformance'],
    ...(options.focus === undefined ? [] : [`--focus=${options.focus}`]),
    ...(skip.length === 0 ? [] : [`--skip=${exactly(skip)}`]),
    ...[programs['e2e.test'], '--', `--kubeconfig=${kubeconfig}`, '--provider=skeleton'],
    ...[`--kubectl-path=${programs.kubectl}`, `--report-dir=${RESULTS}`],
    ...['--disable-log-dump', '--node-os-distro=custom'],
  ];
  try {
    await runGroup(programs.ginkgo, args, {
      log: join(RESULTS, 'ginkgo.log'),
      onOutput: (text) => progress.add(text),
      interrupted,
      limitMs: options.limit * 60_000 + GRACE_MS,
    });
  } finally {
    progress.stop();
  }
}

async function run(options: Options, interrupted: AbortSignal): Promise<boolean> {
  // Before anything is made.
  const why = await whyNoNodes();
  if (why !== undefined) throw new Error(why);
  const toolchain = new Toolchain({ dir: toolsDirectory(), onProgress: narrate(say) });
  await rm(RESULTS, { recursive: true, force: true });
  await mkdir(RESULTS, { recursive: true });
  const programs = await toolchain.ensure(['e2e.test', 'ginkgo', 'kubectl']);
  const listed = await checked(programs['e2e.test']);
  // The tests begin when all pods of kube-system run: what these need is not built within the tests' time.
  for (const name of ['coredns', 'local-path-provisioner'] as const) await toolImage(name, toolchain);
  const archives = await makeTestImages(toolchain, say);
  await toolchain.close();
  interrupted.throwIfAborted();

  const { garden, takeDown } = await bringUpGarden();
  const folder = await mkdtemp(join(tmpdir(), 'coppice-conformance-'));
  try {
    say('making a cluster');
    const kubeconfig = await makeCluster(garden, { nodes: options.nodes, archives: archives.values(), folder });
    interrupted.throwIfAborted();
    say(`${listed.size} conformance tests there are; those that are asked for begin`);
    await runTests(programs, kubeconfig, options, interrupted);
    return (await hasPassed(options)) && !interrupted.aborted;
  } finally {
    await rm(folder, { recursive: true, force: true });
    await takeDown?.();
  }
}

/** Says what became of the tests. */
async function hasPassed({ focus }: Options): Promise<boolean> {
  const junit = await readFile(join(RESULTS, 'junit_01.xml'), 'utf8').catch(() => {
    throw new Error(`the tests left no report; what they said is in ${RESULTS}`);
  });
  const excluded = EXCLUSIONS.filter(({ test }) => focus === undefined || new RegExp(focus).test(test));
  const { lines, failed } = summaryOf(resultsOf(junit), excluded.length);
  for (const line of lines) console.log(line);
  return !failed;
}

const interruption = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => interruption.abort(new Error(`ended by ${signal}`)));
try {
  const options = parseOptions(process.argv.slice(2));
  if (options.help) process.stdout.write(USAGE);
  else process.exitCode = (await run(options, interruption.signal)) ? 0 : 1;
} catch (error) {
  process.stderr.write(`conformance: ${(error as Error).message}\n`);
  process.exitCode = 1;
}
