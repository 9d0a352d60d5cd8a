import type { HubTypeName } from '../api/hub.ts';
import { CLUSTERROLEBINDINGS, CLUSTERROLES, type Resource, SECRETS, SERVICEACCOUNTS } from '../kube/resources.ts';
import { argoCDHub } from './argo-cd.ts';
import { clusterProfileHub } from './cluster-profile.ts';
import { clusternetHub } from './clusternet.ts';
import type { HubType, Side } from './contract.ts';
import { fluxHub } from './flux.ts';
import { karmadaHub } from './karmada/karmada.ts';
import { kueueHub } from './kueue.ts';
import { openClusterManagementHub } from './open-cluster-management.ts';

/** The supported hub types. */
const HUB_TYPES: Readonly<Record<HubTypeName, HubType<any>>> = {
  ClusterProfile: clusterProfileHub,
  ArgoCD: argoCDHub,
  Flux: fluxHub,
  Karmada: karmadaHub,
  Kueue: kueueHub,
  Clusternet: clusternetHub,
  OpenClusterManagement: openClusterManagementHub,
};

/** Kinds on one side that any hub type writes, or has written for a member that has not left. */
export const kindsWritten = (side: Side): Resource[] => {
  const types: readonly HubType[] = Object.values(HUB_TYPES);
  const own = types.flatMap(({ watches, writes = [] }) => [
    ...(side === 'hub' ? watches : []),
    ...writes.filter(({ on }) => on === side).map(({ resource }) => resource),
  ]);
  const all = [...own, SECRETS, CLUSTERROLEBINDINGS, CLUSTERROLES, SERVICEACCOUNTS];
  return [...new Map(all.map((kind) => [`${kind.group}/${kind.plural}`, kind])).values()];
};

/** Implementation of a hub type; undefined: unknown in this build. */
export const hubType = (type: string): HubType | undefined => (HUB_TYPES as Record<string, HubType | undefined>)[type];
