import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { loadAll } from 'js-yaml';
import { ALPHA_API_VERSION } from '../../api/group.ts';
import { EVERY_NAMESPACE, type Hub } from '../../api/hub.ts';
import type { KubeClient } from '../../kube/client.ts';
import { CRDS, HUBS, type KubeObject } from '../../kube/resources.ts';

/** Folder with the kinds of SIG-Multicluster's cluster inventory, as they are published. */
export const CLUSTER_INVENTORY = fileURLToPath(new URL('./cluster-inventory', import.meta.url));

/** The Hub that an embedded garden begins with: an inventory, in the garden itself, of all its clusters. */
export const INVENTORY: Hub = {
  apiVersion: ALPHA_API_VERSION,
  kind: 'Hub',
  metadata: { name: 'inventory' },
  spec: { type: 'ClusterProfile', allowedNamespaces: [EVERY_NAMESPACE] },
};

/**
 * What is still to be applied of the inventory: the Hub once in the life of a garden, and its kinds where they are missing and it is there.
 * What an administrator has changed, deleted or installed is left as it is.
 * @param had whether the garden was given the Hub before
 */
export async function inventoryManifests(
  client: Pick<KubeClient, 'getOrUndefined'>,
  had: boolean,
): Promise<KubeObject[]> {
  const hub = await client.getOrUndefined<Hub>(HUBS, INVENTORY.metadata.name);
  if (hub ? !isInventory(hub) : had) return [];
  const kinds = await inventoryKinds();
  const live = await Promise.all(kinds.map(({ metadata }) => client.getOrUndefined(CRDS, metadata.name)));
  return [...kinds.filter((_, index) => !live[index]), ...(hub ? [] : [INVENTORY])];
}

const isInventory = ({ metadata, spec }: Hub): boolean =>
  spec.type === INVENTORY.spec.type && !spec.kubeconfigRef && !metadata.deletionTimestamp;

async function inventoryKinds(): Promise<KubeObject[]> {
  const names = (await readdir(CLUSTER_INVENTORY)).filter((name) => name.endsWith('.yaml'));
  const texts = await Promise.all(names.map((name) => readFile(`${CLUSTER_INVENTORY}/${name}`, 'utf8')));
  return texts.flatMap((text) => loadAll(text) as KubeObject[]).filter(Boolean);
}
