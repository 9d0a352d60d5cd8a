import { defineConfig } from 'vitest/config';
import LongestFirst from './test/kit/longest-first.ts';

/** How long `expect.poll` looks where a test does not say; vitest's second is too short for a machine with more to do. */
const POLL_MS = 60_000;
/** Ends what hangs. In a whole run unit and integration tests give way to the end-to-end tests, and get a twentieth of a core at times. */
const HANGS_MS = 600_000;

const tier = (name: string, order: number, more: object) => ({
  // Tiers take turns, and a cheap failure should be seen first. `npm test` has the last beside the others: test/run.ts.
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    sequence: { groupOrder: order },
    expect: { poll: { timeout: POLL_MS } },
    ...more,
  },
});

export default defineConfig({
  test: {
    reporters: ['default', './test/kit/summary-reporter.ts'],
    sequence: { sequencer: LongestFirst },
    projects: [
      tier('unit', 1, { maxWorkers: 2, testTimeout: HANGS_MS, hookTimeout: HANGS_MS }),
      tier('integration', 2, {
        // Vitest would leave a core free, of two; engines of Pulumi wait for each other's processes most of the time.
        maxWorkers: 2,
        globalSetup: ['test/kit/tools.ts', 'test/kit/apiserver-setup.ts'],
        testTimeout: HANGS_MS,
        hookTimeout: HANGS_MS,
      }),
      // One garden: the end-to-end files take turns as well.
      tier('e2e', 3, {
        globalSetup: 'test/kit/garden-setup.ts',
        testTimeout: 1_200_000,
        hookTimeout: 1_200_000,
        fileParallelism: false,
      }),
      // Real hubs, whose programs are built beside the repository: `npm run test:hubs`, and no part of other runs.
      tier('hubs', 4, {
        globalSetup: 'test/kit/tools.ts',
        testTimeout: 600_000,
        hookTimeout: 300_000,
        fileParallelism: false,
      }),
    ],
  },
});
