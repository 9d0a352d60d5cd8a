import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { startApiserver, type TestApiserver } from './apiserver.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Socket on which the keys of the API server are told that files share, or why there is none. */
    sharedApiserver: string;
  }
}

/** What is told on the socket: ApiserverKeys, or an error. */
const told = (starting: Promise<TestApiserver>): Promise<string> =>
  starting.then(
    ({ keys }) => JSON.stringify({ keys }),
    (error: Error) => JSON.stringify({ error: error.message }),
  );

/**
 * vitest's globalSetup of the project `integration`: the API server of `sharedApiserver()`, started when the first file asks for it.
 * Runs that need none pay for none.
 */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  // Nobody else may enter the folder: the socket hands out an administrator's key.
  const folder = await mkdtemp(join(tmpdir(), 'coppice-shared-'));
  let starting: Promise<TestApiserver> | undefined;
  const server = createServer((socket) => {
    starting ??= startApiserver();
    // Who asked may have been ended meanwhile.
    socket.on('error', () => {});
    void told(starting).then((text) => socket.end(text));
  }).listen(join(folder, 'socket'));
  await once(server, 'listening');
  project.provide('sharedApiserver', join(folder, 'socket'));
  return async () => {
    server.close();
    await starting?.then(
      (apiserver) => apiserver.stop(),
      () => {},
    );
    await rm(folder, { recursive: true, force: true });
  };
}
