import { KubeApiError } from '../../kube/errors.ts';
import { CRDS, type KubeObject } from '../../kube/resources.ts';
import type { CustomKind, Reader } from '../contract.ts';
import { acceptsMember, type Bindings, customKindOf } from './bindings.ts';
import { apisOf, CLUSTERS, type KarmadaCluster } from './cluster.ts';

/** CustomResourceDefinitions read per group. */
const MOST_DEFINITIONS = 20;

interface Definition extends KubeObject {
  spec?: { names?: { kind?: string }; versions?: { name: string; served?: boolean }[] };
}

/**
 * Where the custom kinds of these bindings are served: on which members, by Karmada's status, and whether Karmada
 * propagates their CustomResourceDefinitions. Nothing is read where all kinds are Kubernetes' own.
 * @param all every binding of the hub, which include those of CustomResourceDefinitions
 */
export async function customKindsOf(
  hub: Reader,
  bindings: Bindings,
  all: Bindings,
): Promise<ReadonlyMap<string, CustomKind>> {
  const kinds = new Set(bindings.flatMap(({ binding }) => customKindOf(binding) ?? []));
  if (kinds.size === 0) return new Map();
  const clusters = (await hub.list(CLUSTERS)) as KarmadaCluster[];
  const found = [...kinds].map(async (kind): Promise<[string, CustomKind]> => {
    const servedBy = clusters.filter((one) => apisOf(one).includes(kind)).map(({ metadata }) => metadata.name);
    const bringing = await placementsOf(hub, kind, all);
    const isBroughtTo: CustomKind['isBroughtTo'] = (member) => bringing.some((accepts) => accepts(member));
    return [kind, { kind, servedBy: new Set(servedBy), isBroughtTo }];
  });
  return new Map(await Promise.all(found));
}

/** Placements by which Karmada propagates a kind's definition. */
async function placementsOf(hub: Reader, kind: string, all: Bindings) {
  const [, group, version, name = ''] = /^(.+)\/(\S+) (\S+)$/.exec(kind) ?? [];
  const ofGroup = all.filter(
    ({ binding: { spec } }) => spec?.resource?.kind === CRDS.kind && spec.resource.name?.endsWith(`.${group}`),
  );
  // The definition is named by the plural, which usually begins with the kind.
  const isLikely = ({ binding: { spec } }: Bindings[number]) => spec?.resource?.name?.startsWith(name.toLowerCase());
  const likeliest = ofGroup.sort((a, b) => Number(isLikely(b) ?? false) - Number(isLikely(a) ?? false));
  const bringing = await Promise.all(
    likeliest.slice(0, MOST_DEFINITIONS).map(async ({ binding: { spec } }) => {
      const { names, versions = [] } = (await definition(hub, spec?.resource?.name ?? ''))?.spec ?? {};
      const isServed = names?.kind === name && versions.some((one) => one.name === version && one.served);
      return isServed ? [acceptsMember(spec?.placement)] : [];
    }),
  );
  return bringing.flat();
}

/** undefined also where the hub denies the read: then it does not count as propagated. */
async function definition(hub: Reader, name: string): Promise<Definition | undefined> {
  try {
    return (await hub.get(CRDS, name)) as Definition | undefined;
  } catch (error) {
    if (error instanceof KubeApiError && error.isForbidden) return undefined;
    throw error;
  }
}
