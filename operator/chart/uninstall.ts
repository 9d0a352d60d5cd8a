import type { KubeClient } from '../kube/client.ts';
import { isNotFound } from '../kube/errors.ts';
import { type KubeObject, type Resource, SHOOTS, WORKERCLUSTERS } from '../kube/resources.ts';

const NAMED = 5;

/** Remaining clusters, as `Kind namespace/name`. Empty where the kinds do not exist. */
export async function clustersLeft(client: KubeClient): Promise<string[]> {
  const [workerClusters, shoots] = await Promise.all([all(client, WORKERCLUSTERS), all(client, SHOOTS)]);
  const made = new Set(workerClusters.map(({ metadata }) => metadata.uid));
  const isMadeByOne = ({ metadata }: KubeObject) => metadata.ownerReferences?.some(({ uid }) => made.has(uid)) ?? false;
  const name = (kind: string) => (object: KubeObject) => `${kind} ${object.metadata.namespace}/${object.metadata.name}`;
  return [
    ...workerClusters.map(name('WorkerCluster')),
    ...shoots.filter((shoot) => !isMadeByOne(shoot)).map(name('Shoot')),
  ];
}

async function all(client: KubeClient, resource: Resource): Promise<KubeObject[]> {
  try {
    return (await client.list(resource)).items;
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
}

/** Why the chart must not be uninstalled, with advice; undefined: no cluster would be left without an operator. */
export function whyNotUninstalled(left: readonly string[]): string | undefined {
  if (left.length === 0) return undefined;
  const named = left.slice(0, NAMED).join(', ');
  const more = left.length > NAMED ? ` and ${left.length - NAMED} more` : '';
  const clusters = left.length === 1 ? '1 cluster is left' : `${left.length} clusters are left`;
  return (
    `${clusters}: ${named}${more}. Delete them with kubectl and uninstall again. ` +
    'Or uninstall with --no-hooks: they keep running without an operator, until you install the chart again.'
  );
}
