import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { casesOf } from '../../kit/cases.ts';

const program = (name: string) => fileURLToPath(new URL(`hostile/${name}.ts`, import.meta.url));

let server: ChildProcess | undefined;
afterEach(async () => {
  server?.kill('SIGKILL');
  if (server && server.exitCode === null && server.signalCode === null) await once(server, 'exit');
});

/** What an operator makes of an API server that answers like that. `heap` in MiB. */
async function openCluster(how: string, nodes = 4000, heap = 256) {
  server = spawn(process.execPath, [program('api-server'), how, String(nodes)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [kubeconfig] = (await once(server.stdout!, 'data')) as [Buffer];
  const operator = [`--max-old-space-size=${heap}`, program('operator'), JSON.parse(kubeconfig.toString()) as string];
  const { stdout } = await promisify(execFile)(process.execPath, operator, { timeout: 300_000 });
  return JSON.parse(stdout) as { opened: 'opened' | { code: string; message: string }; nodes: number; tookMiB: number };
}

describe('an API server that a tenant controls', { timeout: 310_000 }, () => {
  // By pages it is the same code that makes them small: 4,000 there too with COPPICE_TEST_HOSTILE_NODES=4000.
  it.each([
    ['fat-nodes', casesOf(4000, 600)],
    ['fat-pages', Number(process.env.COPPICE_TEST_HOSTILE_NODES ?? 600)],
  ] as const)('with Nodes of 256 KiB is followed with a heap that could not hold them (%s, %i)', async (how, count) => {
    const { opened, nodes, tookMiB } = await openCluster(how, count, 96);
    expect({ opened, nodes }).toEqual({ opened: 'opened', nodes: count });
    expect(tookMiB).toBeLessThan(300);
  });

  it.each([
    ['no-pages', /the answer to GET \/api\/v1\/nodes at https:\/\/127\.0\.0\.1:\d+ has more than 16 MiB/],
    ['endless-list', /the answer to GET \/api\/v1\/nodes .* has more than 16 MiB/],
    ['nested', /the answer to GET \/api\/v1\/nodes .* has more than a reasonable number of values/],
    ['endless-event', /the answer to WATCH \/api\/v1\/nodes .* has more than 4 MiB in one event/],
    ['endless-pods', /the answer to WATCH pods .* has more than \d+ MiB that the operator has room for/],
    ['endless-nodes', /the answer to WATCH nodes .* has more than \d+ MiB that the operator has room for/],
  ])(
    'that answers without end costs its cluster the connection, not the operator its memory (%s)',
    async (how, why) => {
      const { opened, tookMiB } = await openCluster(how);
      expect(opened).toEqual({ code: 'ERR_RETRYABLE_INFRA_DEPENDENCIES', message: expect.stringMatching(why) });
      expect(tookMiB).toBeLessThan(300);
    },
  );
});
