/**
 * `npm test`: every tier, the end-to-end tests beside the others. Each waits for processes most of the time, and one after the other
 * they take more than an hour of two cores. The end-to-end tests are the longer half and go first where both want a core.
 * `tools` as first argument: makes only what tests need. `e2e`: only these tests, or those of their files that follow. Anything else is
 * files or options of vitest, in one run.
 */
import { readdirSync } from 'node:fs';
import { budgetSeconds, longestFirst } from './kit/durations.ts';
import { bringUpGarden, GARDEN_VARIABLE } from './kit/garden-setup.ts';
import { nextFile } from './kit/lanes.ts';
import { chosenRotation, tellRotation } from './kit/rotation.ts';
import { TestRuns } from './kit/test-runs.ts';
import { allTools } from './kit/tools.ts';

/** Of what is not urgent. */
const NICE = 5;
/** What vitest itself takes around a file, on a busy machine. */
const START_SECONDS = 60;

/** Makes what both halves need. One after the other, and not within anybody's time: one that waits for the other's builds may run out of its own. */
const tools = (): Promise<void> =>
  allTools().catch((error: Error) => runs.fail(`tools cannot be made: ${error.message}`));

/** Brings one garden up, and runs each end-to-end file in it: as many at once as leave each other alone. */
async function endToEnd(files: readonly string[]): Promise<void> {
  let waiting = longestFirst(files, (file) => file);
  const opened = await bringUpGarden().catch((error: Error) => runs.fail(`no garden: ${error.message}`));
  if (!opened) return;
  process.env[GARDEN_VARIABLE] = JSON.stringify(opened.garden);
  const running = new Map<string, Promise<void>>();
  while (waiting.length > 0 || running.size > 0) {
    const file = nextFile(waiting, [...running.keys()]);
    if (file === undefined) {
      await Promise.race(running.values());
      continue;
    }
    waiting = waiting.filter((one) => one !== file);
    const name = file.slice('test/'.length, -'.test.ts'.length).replace('/', '-');
    const limitSeconds = budgetSeconds(file) + START_SECONDS;
    const run = runs.run(name, ['--project', 'e2e', file], { limitSeconds });
    running.set(
      file,
      run.then(() => void running.delete(file)),
    );
  }
  await opened.takeDown?.().catch((error: Error) => runs.fail(error.message));
}

const allEndToEnd = () =>
  readdirSync('test/e2e')
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `test/e2e/${name}`);

const unitAndIntegration = () =>
  runs.run('unit-integration', ['--project', 'unit', '--project', 'integration'], { nice: NICE });

const [command, ...chosen] = process.argv.slice(2);
if (command === 'tools') {
  await allTools();
  process.exit();
}
const runs = new TestRuns();
let isPreparing = true;

function stop(why: string): void {
  runs.stop(why);
  // Builds are not ours to end: what they have made until now is used the next time.
  if (isPreparing) end();
}

function end(): never {
  const { line, failed } = runs.finish();
  console.log(line);
  process.exit(failed ? 1 : 0);
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop(`by ${signal}`));
// CI says nothing when it ends a run: this one ends itself before, with what it has counted.
const { COPPICE_TESTS_END: until } = process.env;
if (until) setTimeout(() => stop('its time is up (COPPICE_TESTS_END)'), Number(until) * 1000 - Date.now()).unref();

if (command !== undefined && command !== 'e2e') {
  isPreparing = false;
  // Nothing is gained by more than one run, of which some may have no file.
  await runs.run('chosen', [command, ...chosen]);
  end();
}
const { rotation, why } = chosenRotation();
tellRotation(rotation);
console.log(
  `tests: rotation ${rotation}, ${why}; COPPICE_TEST_ROTATION chooses another, npm run test:all runs everything`,
);
await tools();
isPreparing = false;
if (command === 'e2e') await endToEnd(chosen.length > 0 ? chosen : allEndToEnd());
else await Promise.all([endToEnd(allEndToEnd()), unitAndIntegration()]);
end();
