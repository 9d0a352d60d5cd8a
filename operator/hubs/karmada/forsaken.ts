import type { KubeObject, Resource } from '../../kube/resources.ts';
import type { Reader, Touch } from '../contract.ts';
import { WORKS } from './seen.ts';

const EXECUTION = 'karmada.io/execution-controller';

interface Identifier {
  readonly group?: string;
  readonly version: string;
  readonly resource: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
}
type Work = KubeObject & {
  spec?: { workload?: { manifests?: object[] }; preserveResourcesOnDeletion?: boolean };
  status?: { manifestStatuses?: { identifier: Identifier }[] };
};

/**
 * Works on their way out of which nothing is in the member any more, and of which nobody lets go: the agent's right to them went with their
 * namespace before they did, so it took away what they made and could not say so. Karmada waits for them for ever, and the Cluster with it.
 * What still has something in the member, or may have, is not among them: it would stay there for good.
 */
export async function forsaken(hub: Reader, member: Reader, namespace: string): Promise<Touch[]> {
  const works = (await hub.list(WORKS, { namespace })) as Work[];
  const found = await Promise.all(
    works.map(async (work) => {
      const { name, uid = '', deletionTimestamp, finalizers = [] } = work.metadata;
      if (!deletionTimestamp || !finalizers.includes(EXECUTION) || !(await isEmpty(member, work))) return [];
      // To what is being deleted nobody adds one in between.
      const metadata = { finalizers: finalizers.filter((one) => one !== EXECUTION) };
      return [{ on: 'hub' as const, resource: WORKS, namespace, name, uid, patch: { metadata } }];
    }),
  );
  return found.flat();
}

/** Whether nothing of what it says is in the member. Karmada tells by which name the API server has each kind. */
async function isEmpty(member: Reader, { spec, status }: Work): Promise<boolean> {
  const made = (status?.manifestStatuses ?? []).map(({ identifier }) => identifier);
  if (spec?.preserveResourcesOnDeletion || made.length !== (spec?.workload?.manifests ?? []).length) return false;
  for (const { group = '', version, resource: plural, kind, namespace, name } of made) {
    const resource: Resource = { group, version, plural, kind, namespaced: Boolean(namespace) };
    if (await member.get(resource, name, namespace || undefined)) return false;
  }
  return true;
}
