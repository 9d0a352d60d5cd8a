import type { HubSpec } from '../../api/hub.ts';
import { podSecurityLabels } from '../../kube/pod-security.ts';
import { type KubeObject, NAMESPACES } from '../../kube/resources.ts';
import type { HubType, Identity, Member, Removal, Wanted } from '../contract.ts';
import { CLUSTER_NAMESPACE, type KarmadaCluster } from './cluster.ts';
import type { Looked, Seen } from './seen.ts';

/** Who carries Works from Karmada into a member, and how: what push and pull do not share. */
export interface SyncMode extends Looked {
  readonly dials: ReturnType<HubType['dials']>;
  identities(member: Member, spec: HubSpec): readonly Identity[];
  /** Fields of the Cluster's spec that say how the cluster is reached. */
  reachedBy(member: Member): Record<string, unknown>;
  /** Of step CredentialsReady. */
  access(member: Member, cluster: KarmadaCluster | undefined): readonly Wanted[];
  /** Of step Registered, beside the Cluster. */
  registered(
    member: Member,
    spec: HubSpec,
    seen: Seen,
  ): { readonly apply: readonly Wanted[]; readonly waiting?: string | undefined };
  /** What is to go, in order; what else was made goes after that. */
  removals(member: Member, seen: Seen): readonly Removal[];
}

export const DAY = 24 * 3600;

/** Namespace of the hub for what belongs to clusters; Karmada's own, and kept. */
export const clusterNamespace = (): Wanted => {
  const object: KubeObject = {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: CLUSTER_NAMESPACE, labels: { 'karmada.io/system': 'true', ...podSecurityLabels('restricted') } },
  };
  return { on: 'hub', resource: NAMESPACES, object, shared: true };
};
