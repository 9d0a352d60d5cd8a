import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import grpc from '@grpc/grpc-js';
import { ownIdentity } from '../../../operator/garden/host/process-identity.ts';
import type { PluginHost } from './gate.ts';
import { CLOUDS, type CloudModel, type CloudName, type Settings } from './model.ts';
import { createOperations } from './operations.ts';
import { createServer } from './server.ts';
import { openStore } from './store.ts';

const MODELS: Record<CloudName, () => Promise<CloudModel>> = {
  aws: async () => (await import('./aws/model.ts')).aws,
  gcp: async () => (await import('./gcp/model.ts')).gcp,
  'azure-native': async () => (await import('./azure/model.ts')).azure,
};

// Real plugins outlive a killed engine, and so must this one long enough to be noticed; but no test run leaves it for good.
const ORPHAN_MS = 30_000;
const LOOK_MS = 1_000;

/** The engine, if that is what started us; a test that drives the plugin itself must not be killed. */
const engineOf = (pid: number): number | undefined => {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').startsWith('pulumi') ? pid : undefined;
  } catch {
    return undefined;
  }
};

/** Serves one provider plugin until the engine ends it. Arguments: cloud, directory, and what the engine adds. */
export async function serve([cloud, dir]: string[]): Promise<void> {
  const name = CLOUDS.find((one) => one === cloud);
  if (!name || !dir) throw new Error(`usage: plugin.ts ${CLOUDS.join('|')} <directory of the fake cloud>`);
  const model = await MODELS[name]();
  const engine = engineOf(process.ppid);
  const store = openStore(dir);
  store.writeJSON(await ownIdentity(), 'processes', `${process.pid}.json`);

  const cancelled = new AbortController();
  const host: PluginHost = {
    now: Date.now,
    sleep: (ms) =>
      sleep(ms, undefined, { signal: cancelled.signal }).catch(() => {
        // As Go says it, in which real plugins are written.
        throw new Error('context canceled');
      }),
    exit: () => process.exit(1),
    killEngine: () => {
      if (engine !== undefined) process.kill(engine, 'SIGKILL');
    },
  };
  let settings: Settings | undefined;
  const configured = () => (settings ??= model.settings({}, process.env));
  const version = createRequire(import.meta.url)(`@pulumi/${name}/package.json`).version as string;
  const server = createServer({
    model,
    store,
    operations: createOperations(model, store, configured, host),
    version,
    configure: (given) => {
      settings = given;
    },
    cancel: () => cancelled.abort(),
  });
  const port = await promisify(server.bindAsync.bind(server))('127.0.0.1:0', grpc.ServerCredentials.createInsecure());
  // Pulumi reads the port from the first line.
  process.stdout.write(`${port}\n`);

  // The engine interrupts its plugins when it is done with them, and kills after five seconds who has not ended.
  process.once('SIGINT', () => server.tryShutdown(() => process.exit(0)));
  let orphanedAt: number | undefined;
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid === parent) return;
    orphanedAt ??= Date.now();
    if (Date.now() - orphanedAt > ORPHAN_MS) process.exit(0);
  }, LOOK_MS).unref();
}
