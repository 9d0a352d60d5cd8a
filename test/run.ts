/**
 * `npm test`: what a newcomer waits for (the sets of files: kit/sets.ts). The end-to-end tests run beside the others: each waits for processes
 * most of the time, and they go first where both want a core. Unit tests run while tools are made.
 * As first argument: `ci` goes on with what CI runs besides, and has all cases of properties; `all` has everything. `tools` makes only what such
 * a run needs. `--list` prints the tiers. `e2e`: only these tests, or those of their files that follow. Anything else is files or options of
 * vitest, in one run.
 */
import { chooseCases } from './kit/cases.ts';
import { budgetSeconds, longestFirst } from './kit/durations.ts';
import { bringUpGarden, GARDEN_VARIABLE, isKept } from './kit/garden-setup.ts';
import { inLanes, LANES, QUIET } from './kit/lanes.ts';
import { toolSteps } from './kit/needed-tools.ts';
import { chosenRotation, tellRotation } from './kit/rotation.ts';
import { isWholeRun, stagesOf, type TierName, tellLeftOut, tierOf, type WholeRun } from './kit/sets.ts';
import { TestRuns } from './kit/test-runs.ts';
import { listTiers } from './kit/tiers.ts';
import { testTools } from './kit/tools.ts';

/** Of what is not urgent. */
const NICE = 5;
/** What vitest itself takes around a file, on a busy machine. */
const START_SECONDS = 60;

const ofTier = (files: readonly string[], tier: TierName): string[] => files.filter((file) => tierOf(file) === tier);

/**
 * Makes what all but unit tests need, one step after the other. Not within anybody's time: a file that waits for another's builds may run
 * out of its own. @returns when each file can begin; no promise rejects
 */
function makeTools(stages: readonly string[][], fail: (message: string) => void): Map<string, Promise<void>> {
  const ready = new Map<string, Promise<void>>();
  let last = Promise.resolve();
  for (const { tools, files } of toolSteps(stages)) {
    const make = async () => {
      await testTools(...tools);
      // A garden goes without it, and the tests that need it say so.
      if (ofTier(files, 'e2e').length > 0) await testTools('slirp4netns').catch(() => {});
    };
    last = last.then(make).catch((error: Error) => fail(`tools cannot be made: ${error.message}`));
    for (const file of files) ready.set(file, last);
  }
  return ready;
}

const [command, ...chosen] = process.argv.slice(2);
if (command === '--list') {
  console.log(listTiers());
  process.exit();
}
if (command === 'tools') {
  const run = isWholeRun(chosen[0]) ? chosen[0] : 'short';
  const failures: string[] = [];
  await Promise.all(makeTools(stagesOf(run, chosenRotation().rotation), (message) => failures.push(message)).values());
  for (const failure of failures) console.error(`tests: ${failure}`);
  process.exit(failures.length > 0 ? 1 : 0);
}

const runs = new TestRuns();
const began = performance.now();
/** Resolves when no file waits for tools any more. */
const stopping = Promise.withResolvers<void>();

function stop(why: string): void {
  runs.stop(why);
  // Builds are not ours to end: what they have made until now is used the next time.
  stopping.resolve();
}

function end(): never {
  const { line, failures, failed } = runs.finish();
  for (const failure of failures) console.log(`failed: ${failure}`);
  console.log(line);
  process.exit(failed ? 1 : 0);
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop(`by ${signal}`));
// CI says nothing when it ends a run: this one ends itself before, with what it has counted.
const { COPPICE_TESTS_END: until } = process.env;
if (until) setTimeout(() => stop('its time is up (COPPICE_TESTS_END)'), Number(until) * 1000 - Date.now()).unref();

/** Runs each end-to-end file in a garden in which nothing else runs. @param others what goes on meanwhile */
async function runEndToEnd(
  files: readonly string[],
  ready: ReadonlyMap<string, Promise<void>>,
  others?: Promise<unknown>,
): Promise<void> {
  await Promise.race([stopping.promise, ...files.flatMap((file) => ready.get(file) ?? [])]);
  if (files.length === 0 || runs.stopped !== undefined) return;
  await inLanes(files, {
    lanes: isKept() ? 1 : LANES,
    quiet: QUIET,
    calm: others,
    ready: new Map([...ready].map(([file, made]) => [file, Promise.race([stopping.promise, made])])),
    open: bringUpGarden,
    run(file, garden) {
      const name = file.slice('test/'.length, -'.test.ts'.length).replace('/', '-');
      const limitSeconds = budgetSeconds(file) + START_SECONDS;
      const env = { [GARDEN_VARIABLE]: JSON.stringify(garden) };
      return runs.run(name, ['--project', 'e2e', file], { limitSeconds, env });
    },
    fail: (message) => runs.fail(message),
  });
}

/** Runs the files of a whole run, stage by stage: those that `npm test` has come first in each tier. */
async function runWhole(run: WholeRun, stages: readonly string[][]): Promise<void> {
  const ready = makeTools(stages, (message) => runs.fail(message));
  const runOthers = async () => {
    for (const [index, files] of stages.entries())
      for (const tier of ['unit', 'integration'] as const) {
        const own = ofTier(files, tier);
        // Unit tests run while tools are made, which on a new machine takes minutes and leaves a core idle now and then.
        if (tier === 'integration')
          await Promise.race([stopping.promise, Promise.all(own.flatMap((file) => ready.get(file) ?? []))]);
        if (own.length > 0) await runs.run(`${tier}-${index + 1}`, ['--project', tier, ...own], { nice: NICE });
      }
  };
  const others = runOthers();
  const endToEnd = stages.flatMap((files) => longestFirst(ofTier(files, 'e2e'), (file) => file));
  await Promise.all([others, runEndToEnd(endToEnd, ready, others)]);
  console.log(`tests: ${run} took ${Math.round((performance.now() - began) / 1000)} s`);
}

const { rotation, why } = chosenRotation();
if (command === undefined || isWholeRun(command)) {
  const run = command ?? 'short';
  tellRotation(rotation);
  chooseCases(run === 'short' ? 'few' : 'all');
  console.log(`tests: rotation ${rotation}, ${why}; COPPICE_TEST_ROTATION chooses another`);
  for (const line of tellLeftOut(run, rotation)) console.log(`tests: ${line}`);
  await runWhole(run, stagesOf(run, rotation));
  for (const line of tellLeftOut(run, rotation)) console.log(`tests: ${line}`);
} else if (command === 'e2e') {
  tellRotation(rotation);
  const files = chosen.length > 0 ? chosen : stagesOf('ci', rotation).flatMap((all) => ofTier(all, 'e2e'));
  const ordered = longestFirst(files, (file) => file);
  await runEndToEnd(
    ordered,
    makeTools([ordered], (message) => runs.fail(message)),
  );
} else {
  // Nothing is gained by more than one run, of which some may have no file.
  await runs.run('chosen', [command, ...chosen]);
}
end();
