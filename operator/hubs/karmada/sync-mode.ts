import type { HubSpec } from '../../api/hub.ts';
import { podSecurityLabels } from '../../kube/pod-security.ts';
import { type KubeObject, NAMESPACES } from '../../kube/resources.ts';
import type { HubType, Identity, Member, RemovalStep, WantedObject } from '../contract.ts';
import { CLUSTER_NAMESPACE, type KarmadaCluster } from './cluster.ts';
import type { KarmadaSeen, Looked } from './seen.ts';

/** How Works reach a member: the differences between push and pull. */
export interface SyncMode extends Looked {
  readonly dials: ReturnType<HubType['dials']>;
  identities(member: Member, spec: HubSpec): readonly Identity[];
  /** Fields of the Cluster's spec for this mode. */
  reachedBy(member: Member): Record<string, unknown>;
  /** Objects of step CredentialsReady. */
  access(member: Member, cluster: KarmadaCluster | undefined): readonly WantedObject[];
  /** Objects of step Registered, in addition to the Cluster. */
  registered(
    member: Member,
    spec: HubSpec,
    seen: KarmadaSeen,
  ): { readonly apply: readonly WantedObject[]; readonly waiting?: string | undefined };
  /** Stages of a leave, in order; all other objects are deleted after them. */
  removals(member: Member, seen: KarmadaSeen): readonly RemovalStep[];
}

export const DAY = 24 * 3600;

/** The hub's namespace for Secrets of clusters; Karmada's own, never deleted. */
export const clusterNamespace = (): WantedObject => {
  const object: KubeObject = {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: CLUSTER_NAMESPACE, labels: { 'karmada.io/system': 'true', ...podSecurityLabels('restricted') } },
  };
  return { on: 'hub', resource: NAMESPACES, object, shared: true };
};
