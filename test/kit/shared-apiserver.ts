import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { inject } from 'vitest';
import { type ApiserverAccess, type ApiserverKeys, accessTo } from './apiserver-access.ts';

export interface SharedApiserver extends ApiserverAccess {
  /** A namespace that no other file uses. */
  namespace: string;
  /** For files of this test file; goes with leave(). */
  directory: string;
  /** Makes one more namespace that no other file uses. */
  newNamespace(): Promise<string>;
  /** Closes all clients. The API server goes on for other files. */
  leave(): Promise<void>;
}

/**
 * The API server of this run of the integration tests, which files use at the same time. Take it in a file that
 * - keeps to namespaces that it was given here, also where it lists, counts or follows objects,
 * - makes objects outside of namespaces only of a kind that no other such file makes, under names with `namespace` in them, or the same in
 *   every file, as `installManifests()`: CRDs that are never changed, roles, policies.
 *
 * Start one with `startApiserver()` in a file that kills, fills or configures it, that changes what all see (a CRD, a webhook), that counts
 * everything there is of a kind, or that runs an operator: it would work on clusters of other files.
 */
export async function sharedApiserver(): Promise<SharedApiserver> {
  const answer = JSON.parse(await text(connect(inject('sharedApiserver')))) as
    | { keys: ApiserverKeys }
    | { error: string };
  if ('error' in answer) throw new Error(answer.error);
  const { close, ...access } = accessTo(answer.keys);
  const newNamespace = async () => {
    const name = `test-${randomUUID().slice(0, 8)}`;
    await access.client.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    return name;
  };
  const directory = await mkdtemp(join(tmpdir(), 'coppice-shared-'));
  return {
    ...access,
    namespace: await newNamespace(),
    directory,
    newNamespace,
    async leave() {
      await close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
