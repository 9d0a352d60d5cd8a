import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadAll } from 'js-yaml';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { Informer } from '../../../operator/kube/informer.ts';
import { CRDS, conditionIsTrue, type KubeObject } from '../../../operator/kube/resources.ts';

const FIXTURES = fileURLToPath(new URL('../../fixtures/hubs', import.meta.url));
const PATIENCE_MS = 60_000;

/**
 * Has an API server serve the kinds of these folders, and waits until it serves all that were ever applied.
 * @param folders in test/fixtures/hubs, or absolute paths
 */
export async function serveKinds(client: KubeClient, folders: readonly string[]): Promise<void> {
  for (const folder of folders) await applyFolder(client, folder);
  const served = new Informer(client, CRDS);
  served.start();
  try {
    await served.waitFor(
      () => served.list().every((crd) => conditionIsTrue(crd as never, 'Established')) || undefined,
      { timeoutMs: PATIENCE_MS, what: `the kinds of ${folders.join(', ')} to be served` },
    );
  } finally {
    await served.stop();
  }
}

/** Applies what is in a folder of test/fixtures/hubs, or in one by its absolute path. */
export async function applyFolder(client: KubeClient, folder: string): Promise<void> {
  const path = resolve(FIXTURES, folder);
  for (const file of (await readdir(path)).filter((name) => name.endsWith('.yaml'))) {
    const objects = loadAll(await readFile(join(path, file), 'utf8')) as KubeObject[];
    // A kustomization beside them is no object.
    for (const object of objects) if (object?.metadata) await client.apply(object);
  }
}
