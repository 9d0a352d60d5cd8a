import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, onTestFinished } from 'vitest';
import { classify } from '../../../providers/aws/errors.ts';
import type { CloudProgress, StateBackend } from '../../../providers/cloud.ts';
import { beingCreated } from '../../../providers/pulumi/being-created.ts';
import type { StackRequest } from '../../../providers/pulumi/request.ts';
import { PulumiRunner, type RunnerOptions } from '../../../providers/pulumi/runner.ts';
import { type FakeCloud, fakeCloud } from '../../kit/cloud/index.ts';
import { testTools } from '../../kit/tools.ts';
import type { Inputs } from './programs.ts';

type StateCopies = NonNullable<StateBackend['copies']>;

const PROGRAMS = fileURLToPath(new URL('./programs.ts', import.meta.url));
/** Time that an engine may take here, ms: two busy cores. */
export const PATIENCE_MS = 10 * 60_000;

/** A line of a log. */
export interface Line {
  level: string;
  message: string;
  fields: Record<string, unknown>;
}

/** One directory with a cloud, a state backend and the homes of runners. A file of tests has one; each test has stacks of its own. */
export interface Testbed {
  cloud: FakeCloud;
  /** The engine's executable. */
  engine: string;
  /** A runner that is closed at the end of the test. `home` names its home: runners with equal homes are incarnations of one. */
  runner(options?: Partial<Omit<RunnerOptions, 'home'>> & { home?: string }): PulumiRunner;
  /** What all runners have logged. */
  lines: Line[];
  stateDirectory: string;
  homeOf(name?: string): string;
  /** A request about a stack of the name, of a cluster of that name. */
  request(name: string, inputs?: Partial<Inputs>, more?: Partial<StackRequest>): StackRequest;
  /** Parts of the cluster that exist in the cloud, sorted; each as often as it exists. */
  parts(name: string): string[];
}

export function sceneForFile(): Testbed {
  const testbed = {} as Testbed & { dir: string };
  beforeAll(async () => {
    const { pulumi } = await testTools('pulumi');
    const dir = await mkdtemp(join(tmpdir(), 'coppice-pulumi-'));
    const cloud = await fakeCloud({ dir: join(dir, 'cloud') });
    const stateDirectory = await mkdtemp(join(dir, 'state-'));
    const lines: Line[] = [];
    const account = cloud.account('aws');
    const log = Object.fromEntries(
      ['debug', 'info', 'warn', 'error'].map((level) => [
        level,
        (fields: Record<string, unknown>, message: string) => lines.push({ level, message, fields }),
      ]),
    ) as unknown as RunnerOptions['log'];

    Object.assign(testbed, {
      dir,
      cloud,
      engine: pulumi,
      lines,
      stateDirectory,
      homeOf: (name = 'home') => join(dir, name),
      runner({ home, ...options } = {}) {
        const runner = new PulumiRunner({
          engine: async () => pulumi,
          home: testbed.homeOf(home),
          log,
          acquirePlugins: false,
          plugins: { aws: cloud.pluginFolders.aws },
          programs: { aws: PROGRAMS },
          ...options,
        });
        onTestFinished(() => runner.close(5_000));
        return runner;
      },
      request: (name, inputs = {}, more = {}) => ({
        stack: { technicalID: name, layer: 'cluster' },
        tenant: 'shop',
        account: account.id,
        region: 'eu-central-1',
        program: { provider: 'aws', layer: 'cluster' },
        inputs: { name, pools: { blue: 1 }, ...inputs },
        backend: { url: pathToFileURL(stateDirectory).href, passphrase: 'a phrase for tests', env: {} },
        credentials: {
          AWS_ACCESS_KEY_ID: account.credentials.accessKeyID!,
          AWS_SECRET_ACCESS_KEY: account.credentials.secretAccessKey!,
        },
        settings: { AWS_REGION: 'eu-central-1' },
        signal: new AbortController().signal,
        findExisting: async (wanted) => {
          const found = partsOf(cloud, name).find(({ part }) => part === wanted.name);
          // As those of clouds do.
          if (found?.part === 'cluster' && Date.now() < found.readyAt) throw beingCreated('the cluster');
          return found;
        },
        classify: ({ text }) => classify(text),
        ...more,
      }),
      parts: (name) =>
        partsOf(cloud, name)
          .map(({ part }) => part)
          .sort(),
    } satisfies Omit<Testbed, never> & { dir: string });
  }, 30 * 60_000);
  afterEach(() => testbed.cloud.faults.clear());
  afterAll(async () => {
    await testbed.cloud?.close();
    if (testbed.dir) await rm(testbed.dir, { recursive: true, force: true });
  });
  return testbed;
}

/** Resources of a cluster in the cloud. */
const partsOf = (cloud: FakeCloud, name: string): { part: string; id: string; readyAt: number }[] => {
  const all = cloud.resources();
  return all
    .filter((one) => cloud.tags(one).owner === name)
    .map((one) => ({
      part: cloud.tags(one).part ?? one.id,
      id: one.id,
      readyAt: one.generation > 1 ? 0 : one.readyAt,
    }));
};

/** Resolves to what `look` finds, once it finds something. */
export async function until<T>(look: () => T | undefined | false | Promise<T | undefined | false>): Promise<T> {
  for (;;) {
    const found = await look();
    if (found) return found;
    await sleep(20);
  }
}

/** Copies of states, kept in memory. */
export function copiesInMemory(): StateCopies & { kept: Map<string, Buffer> } {
  const kept = new Map<string, Buffer>();
  return {
    kept,
    save: async (stack, copy) => void kept.set(stack, copy),
    load: async (stack) => kept.get(stack),
    remove: async (stack) => void kept.delete(stack),
  };
}

/** Keeps what progress was told. */
export const listening = () => {
  const told: CloudProgress[] = [];
  return { told, onProgress: (progress: CloudProgress) => void told.push(progress) };
};

/** Applies, as the operator does, until nothing is in the way that goes by itself: another run, or a cluster that is still being created. */
export const applyPatiently = (runner: PulumiRunner, request: StackRequest): ReturnType<PulumiRunner['apply']> =>
  until(() =>
    runner.apply(request).catch((error: { code?: string }) => {
      if (error.code !== 'ERR_RETRYABLE_INFRA_DEPENDENCIES') throw error;
      return undefined;
    }),
  );
