import { defineConfig } from 'vitest/config';

const tier = (name: string, more: object = {}) => ({
  test: { name, include: [`test/${name}/**/*.test.ts`], ...more },
});

export default defineConfig({
  test: {
    projects: [
      tier('unit', { testTimeout: 30_000 }),
      tier('integration', { testTimeout: 60_000, hookTimeout: 120_000 }),
      // One garden, two cores: the end-to-end files take turns.
      tier('e2e', {
        globalSetup: 'test/kit/garden-setup.ts',
        testTimeout: 600_000,
        hookTimeout: 600_000,
        fileParallelism: false,
      }),
    ],
  },
});
