import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ProgressEvent } from '../../../operator/garden/toolchain/progress.ts';
import { doingText, pulumiEngine, pulumiHome } from '../../../operator/garden/toolchain/pulumi-engine.ts';
import { silent } from '../../../operator/kube/log.ts';
import { engineUnless } from '../../../providers/pulumi/engine.ts';

it("Pulumi's plugins are in a folder of the person, and in the temporary folder in a pod only", () => {
  expect(pulumiHome({ COPPICE_HOME: '/home/jane/.coppice' })).toBe('/home/jane/.coppice/clouds/pulumi-home');
  expect(pulumiHome({})).toBe(join(homedir(), '.coppice', 'clouds', 'pulumi-home'));
  expect(pulumiHome({ KUBERNETES_SERVICE_HOST: '10.0.0.1' })).toBe(join(tmpdir(), 'pulumi-home'));
  expect(pulumiHome({ KUBERNETES_SERVICE_HOST: '10.0.0.1', COPPICE_DATA: '/data' })).toBe('/data/pulumi-home');
});

/** A toolchain whose events and outcome are given from outside. */
function toolchain() {
  const made: { tell: (event: ProgressEvent) => void; done: PromiseWithResolvers<void> }[] = [];
  const engine = pulumiEngine({ COPPICE_TOOLS: '/tools' }, silent, ({ onProgress }) => {
    const done = Promise.withResolvers<void>();
    made.push({ tell: onProgress!, done });
    return {
      async ensure(names) {
        await done.promise;
        return Object.fromEntries(names.map((name) => [name, `/tools/${name}`])) as never;
      },
      close: async () => {},
    };
  });
  return { made, engine };
}

const building = (remainingSeconds: number): ProgressEvent => ({
  tool: 'pulumi',
  phase: 'working',
  source: 'build',
  remainingSeconds,
});

describe("Pulumi's engine on first use", () => {
  it('is fetched once, with progress for all waiters', async () => {
    const { made, engine } = toolchain();
    const heard: string[][] = [[], []];
    const first = engine((doing) => heard[0]!.push(doing));
    made[0]!.tell(building(90));
    const second = engine((doing) => heard[1]!.push(doing));
    made[0]!.tell(building(60));
    made[0]!.done.resolve();
    expect(await Promise.all([first, second])).toEqual(['/tools/pulumi', '/tools/pulumi']);
    expect(made).toHaveLength(1);
    expect(heard).toEqual([
      ['building pulumi, about 90 s left', 'building pulumi, about 60 s left'],
      ['building pulumi, about 90 s left', 'building pulumi, about 60 s left'],
    ]);
  });

  it('is retried after a failure, with advice', async () => {
    const { made, engine } = toolchain();
    const first = engine();
    made[0]!.done.reject(new Error('no Go here'));
    await expect(first).rejects.toMatchObject({
      message: expect.stringContaining('cannot be installed: no Go here'),
      advice: expect.stringContaining('COPPICE_PULUMI'),
    });
    const second = engine();
    made[1]!.done.resolve();
    expect(await second).toBe('/tools/pulumi');
  });

  it('is not held by cancelled callers', async () => {
    const { made, engine } = toolchain();
    const stop = new AbortController();
    const heard: string[] = [];
    const waiting = engineUnless(stop.signal, engine, (doing) => heard.push(doing));
    stop.abort(new Error('the cluster was deleted'));
    await expect(waiting).rejects.toThrow('the cluster was deleted');
    made[0]!.tell(building(60));
    expect(heard).toEqual([]);
  });

  it.each<[Partial<ProgressEvent>, string | undefined]>([
    [{ phase: 'working', source: 'archive', fraction: 0.429 }, 'downloading pulumi, 42 % done'],
    [{ phase: 'working', source: 'build' }, 'building pulumi'],
    [{ phase: 'waiting', source: 'build' }, 'waiting for another process that installs pulumi'],
    [{ phase: 'skipped', source: 'archive', detail: 'no network' }, undefined],
    [{ phase: 'ready', source: 'cache' }, undefined],
  ])('%j is told as %s', (event, text) => {
    expect(doingText({ tool: 'pulumi', phase: 'working', source: 'build', ...event })).toBe(text);
  });
});
