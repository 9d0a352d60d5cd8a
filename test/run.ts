/**
 * `npm test`: every tier, the end-to-end tests beside the others. Each waits for processes most of the time, and one after the other
 * they take more than an hour of two cores. The end-to-end tests are the longer half and go first where both want a core. Unit tests run
 * while tools are made.
 * `tools` as first argument: makes only what tests need. `--list`: prints the tiers. `e2e`: only these tests, or those of their files that follow. Anything else is
 * files or options of vitest, in one run.
 */
import { readdirSync } from 'node:fs';
import { budgetSeconds, longestFirst } from './kit/durations.ts';
import { bringUpGarden, GARDEN_VARIABLE, isKept } from './kit/garden-setup.ts';
import { inLanes, LANES, LATE, lateTools, QUIET } from './kit/lanes.ts';
import { chosenRotation, tellRotation } from './kit/rotation.ts';
import { TestRuns } from './kit/test-runs.ts';
import { listTiers } from './kit/tiers.ts';
import { allTools, testTools } from './kit/tools.ts';

/** Of what is not urgent. */
const NICE = 5;
/** What vitest itself takes around a file, on a busy machine. */
const START_SECONDS = 60;

/** Makes what all but unit tests need. Not within anybody's time: one that waits for the other's builds may run out of its own. */
async function tools(): Promise<void> {
  await made(allTools());
  isPreparing = false;
}

const made = (making: Promise<void>): Promise<void> =>
  making.catch((error: Error) => runs.fail(`tools cannot be made: ${error.message}`));

/** After all else: of two builds at once one waits for the other. */
const makeLateTools = async (files: readonly string[]): Promise<void> => void (await testTools(...lateTools(files)));

/** Runs each end-to-end file in a garden in which nothing else runs; `others`: what goes on meanwhile. */
const endToEnd = (files: readonly string[], others?: Promise<unknown>): Promise<void> =>
  inLanes(
    longestFirst(files, (file) => file),
    {
      lanes: isKept() ? 1 : LANES,
      quiet: QUIET,
      calm: others,
      late: { files: Object.keys(LATE), ready: Promise.race([stopping.promise, made(makeLateTools(files))]) },
      open: bringUpGarden,
      run(file, garden) {
        const name = file.slice('test/'.length, -'.test.ts'.length).replace('/', '-');
        const limitSeconds = budgetSeconds(file) + START_SECONDS;
        const env = { [GARDEN_VARIABLE]: JSON.stringify(garden) };
        return runs.run(name, ['--project', 'e2e', file], { limitSeconds, env });
      },
      fail: (message) => runs.fail(message),
    },
  );

const allEndToEnd = () =>
  readdirSync('test/e2e')
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `test/e2e/${name}`);

const tier = (name: 'unit' | 'integration') => runs.run(name, ['--project', name], { nice: NICE });

const [command, ...chosen] = process.argv.slice(2);
if (command === '--list') {
  console.log(listTiers());
  process.exit();
}
if (command === 'tools') {
  tellRotation(chosenRotation().rotation);
  await allTools();
  await makeLateTools(allEndToEnd());
  process.exit();
}
const runs = new TestRuns();
let isPreparing = true;
/** No file waits for tools any more. */
const stopping = Promise.withResolvers<void>();
/** The unit tests, once they run. */
let unit: Promise<unknown> = Promise.resolve();

function stop(why: string): void {
  runs.stop(why);
  stopping.resolve();
  // Builds are not ours to end: what they have made until now is used the next time.
  if (isPreparing) void unit.then(end);
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
if (command === 'e2e') {
  await tools();
  await endToEnd(chosen.length > 0 ? chosen : allEndToEnd());
} else {
  // They need no tools, which on a new machine take a third of an hour and leave a core idle now and then.
  unit = tier('unit');
  const ready = tools();
  const others = Promise.all([unit, ready]).then(() => tier('integration'));
  await Promise.all([ready.then(() => endToEnd(allEndToEnd(), others)), others]);
}
end();
