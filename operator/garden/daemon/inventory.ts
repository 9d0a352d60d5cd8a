import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { loadAll } from 'js-yaml';
import { ALPHA_API_VERSION } from '../../api/group.ts';
import { EVERY_NAMESPACE, type Hub } from '../../api/hub.ts';
import type { KubeClient } from '../../kube/client.ts';
import { CRDS, HUBS, type KubeObject } from '../../kube/resources.ts';

/** Folder with the published CRDs of SIG-Multicluster's cluster inventory. */
export const CLUSTER_INVENTORY = fileURLToPath(new URL('./cluster-inventory', import.meta.url));

/** The initial Hub of an embedded garden: an inventory of all its clusters in the garden itself. */
export const INVENTORY: Hub = {
  apiVersion: ALPHA_API_VERSION,
  kind: 'Hub',
  metadata: { name: 'inventory' },
  spec: { type: 'ClusterProfile', allowedNamespaces: [EVERY_NAMESPACE] },
};

/**
 * Inventory manifests to apply: the Hub once in a garden's life, and missing CRDs where the Hub exists. Objects that an
 * administrator changed, deleted or installed are left alone.
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
