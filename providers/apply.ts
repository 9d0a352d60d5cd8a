import type { KubeObject } from '../operator/api/meta.ts';
import { Applier } from '../operator/kube/applier.ts';
import type { KubeClient } from '../operator/kube/client.ts';
import { isNotFound } from '../operator/kube/errors.ts';
import { resourceOf } from '../operator/kube/resources.ts';

/** Reads the object and applies the manifest only if they differ. @returns whether it was written */
export async function applyIfChanged(client: KubeClient, manifest: KubeObject): Promise<boolean> {
  const { name, namespace } = manifest.metadata;
  const live = await client.getOrUndefined(resourceOf(manifest), name, namespace);
  const { changed } = await new Applier(client, () => ({ live })).apply(manifest);
  return changed;
}

/** Awaits a request about an object that may already be deleted. */
export async function ignoreGone(request: Promise<unknown>): Promise<void> {
  try {
    await request;
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
