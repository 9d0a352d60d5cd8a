import type { HubTypeName } from '../api/hub.ts';
import { argoCDHub } from './argo-cd.ts';
import { clusterProfileHub } from './cluster-profile.ts';
import type { HubType } from './contract.ts';
import { fluxHub } from './flux.ts';
import { karmadaHub } from './karmada.ts';
import { openClusterManagementHub } from './open-cluster-management.ts';

/** Every hub that clusters can join. */
const HUB_TYPES: Readonly<Record<HubTypeName, HubType<any>>> = {
  ClusterProfile: clusterProfileHub,
  ArgoCD: argoCDHub,
  Flux: fluxHub,
  Karmada: karmadaHub,
  OpenClusterManagement: openClusterManagementHub,
};

/** What joins clusters to hubs of this type; undefined: this build knows no such type. */
export const hubType = (type: string): HubType | undefined => (HUB_TYPES as Record<string, HubType | undefined>)[type];
