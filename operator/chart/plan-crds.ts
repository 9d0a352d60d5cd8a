import { ANNOTATIONS } from '../api/group.ts';
import type { KubeObject } from '../api/meta.ts';

/** Step for one CRD. `problem`: no CRD is changed, and a person has to act. */
type CrdStep =
  | { do: 'create'; object: KubeObject }
  | { do: 'replace'; object: KubeObject }
  | { do: 'keep'; name: string; because: string }
  | { do: 'refuse'; name: string; problem: string };

/**
 * Steps that update a cluster's CRDs to a release. A CRD written by a newer release stays unchanged: an older operator
 * reads the fields it knows, and no stored object loses its version or fields. So a rollback changes no CRD.
 * @param there the cluster's CRDs, by name
 * @param wanted the release's CRDs
 * @param release this release, x.y.z
 */
export function planCrds(
  there: ReadonlyMap<string, KubeObject>,
  wanted: readonly KubeObject[],
  release: string,
): CrdStep[] {
  return wanted.map((crd): CrdStep => {
    const { name } = crd.metadata;
    const annotations = { ...crd.metadata.annotations, [ANNOTATIONS.release]: release };
    const old = there.get(name);
    if (!old) return { do: 'create', object: { ...crd, metadata: { ...crd.metadata, annotations } } };
    const writer = old.metadata.annotations?.[ANNOTATIONS.release];
    if (writer !== undefined && compareReleases(writer, release) > 0)
      return { do: 'keep', name, because: `release ${writer} wrote it, which is newer than ${release}` };
    const served = versionsOf(crd);
    const lost = storedVersions(old).filter((version) => !served.includes(version));
    if (lost.length > 0) {
      const problem = `objects are stored as ${lost.join(', ')}, which release ${release} does not have: upgrade to a release that has both first`;
      return { do: 'refuse', name, problem };
    }
    // Replaced, not applied: Helm created it from the chart's crds/, and fields dropped by this release would stay
    // owned by Helm.
    const metadata = { ...old.metadata, annotations: { ...old.metadata.annotations, ...annotations } };
    return { do: 'replace', object: { ...old, metadata, spec: crd.spec } };
  });
}

const versionsOf = (crd: KubeObject): string[] => crd.spec.versions.map(({ name }: { name: string }) => name);

const storedVersions = (crd: KubeObject): string[] => crd.status?.storedVersions ?? [];

/** Negative: `a` is older. Of a pre-release (1.2.0-rc.1) only the numbers before the dash are compared. */
function compareReleases(a: string, b: string): number {
  const numbers = (text: string) => text.split(/[-+]/)[0]!.split('.').map(Number);
  const [left, right] = [numbers(a), numbers(b)];
  for (let i = 0; i < 3; i++) {
    const difference = (left[i] || 0) - (right[i] || 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Whether the API server serves the CRD. */
export const isEstablished = (crd: KubeObject | undefined): boolean =>
  (crd?.status?.conditions as { type: string; status: string }[] | undefined)?.some(
    ({ type, status }) => type === 'Established' && status === 'True',
  ) ?? false;
