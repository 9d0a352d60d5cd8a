import { GROUP, LABELS } from '../api/group.ts';
import type { HubSpec } from '../api/hub.ts';
import type { KubeObject, Resource } from '../kube/resources.ts';
import { hubAmountsOf } from './amounts.ts';
import type { HubAmounts, Member, WantedObject } from './contract.ts';
import { rangeNotes } from './range-notes.ts';

/** Domain of Open Cluster Management's groups and labels. */
export const DOMAIN = 'open-cluster-management.io';
/** Label of a cluster's objects in the hub. */
export const CLUSTER_NAME = `${DOMAIN}/cluster-name`;

const kind = (group: string, version: string, plural: string, name: string, namespaced: boolean): Resource => ({
  group: `${group}.${DOMAIN}`,
  version,
  plural,
  kind: name,
  namespaced,
});
export const MANAGEDCLUSTERS = kind('cluster', 'v1', 'managedclusters', 'ManagedCluster', false);
export const KLUSTERLETS = kind('operator', 'v1', 'klusterlets', 'Klusterlet', false);
export const MANIFESTWORKS = kind('work', 'v1', 'manifestworks', 'ManifestWork', true);
export const ADDONS = kind('addon', 'v1alpha1', 'managedclusteraddons', 'ManagedClusterAddOn', true);

/** Coppice's taint key. */
export const TAINT = `${GROUP}/membership-closed`;

interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
  readonly timeAdded?: string;
}

/** The fields of a ManagedCluster that are read. */
export interface ManagedCluster extends KubeObject {
  spec?: { taints?: readonly Taint[] };
  status?: {
    allocatable?: Record<string, string>;
    conditions?: readonly { type: string; status: string; message?: string }[];
  };
}

/**
 * Whether a Coppice operator created it for this cluster; the namespace of a foreign one would otherwise be deleted as
 * a trace. Pure.
 */
export const isOurManagedCluster = ({ id }: Member, cluster: ManagedCluster | undefined): boolean =>
  cluster?.metadata.labels?.[LABELS.membership] !== undefined && cluster.metadata.labels[LABELS.memberIdentity] === id;

/**
 * The desired ManagedCluster of a member. Pure.
 * @param drain removes it from PlacementDecisions; it stays so until the cluster is gone or awake
 */
export function managedCluster(
  member: Member,
  { openClusterManagement }: HubSpec,
  live: ManagedCluster | undefined,
  drain = false,
): WantedObject {
  const { name, labels, closed, endpoint, ranges } = member;
  const { clusterSet } = openClusterManagement ?? {};
  const shown = { ...labels, ...(clusterSet && { [`cluster.${DOMAIN}/clusterset`]: clusterSet }) };
  return {
    on: 'hub',
    resource: MANAGEDCLUSTERS,
    basedOn: live?.metadata.resourceVersion,
    object: {
      apiVersion: `${MANAGEDCLUSTERS.group}/v1`,
      kind: 'ManagedCluster',
      metadata: {
        name,
        // A cluster that leaves after a change of its labels keeps the old ones: without them a Placement would drop
        // it undrained.
        labels: closed === 'Leaving' ? (live?.metadata.labels ?? {}) : shown,
        annotations: rangeNotes(ranges),
      },
      spec: {
        hubAcceptsClient: true,
        leaseDurationSeconds: 60,
        managedClusterClientConfigs: [
          { url: endpoint.server, ...(endpoint.ca && { caBundle: Buffer.from(endpoint.ca).toString('base64') }) },
        ],
        taints: managedClusterTaints(live?.spec?.taints ?? [], closed, drain),
      },
    },
  };
}

/**
 * The taint list is atomic: taints of the hub and of people are repeated unchanged, with the time set by the hub's
 * webhook. A new or changed taint of Coppice's has no time; the webhook rejects one. Pure.
 */
export function managedClusterTaints(live: readonly Taint[], closed: Member['closed'], drain: boolean): Taint[] {
  const before = live.find(({ key }) => key === TAINT);
  const others = () => live.filter(({ key }) => key !== TAINT);
  if (!closed) return others();
  const isDrained = before?.value === closed && before.effect === 'NoSelect';
  // NoSelectIfNew keeps existing PlacementDecisions. NoSelect ends existing placements, which move elsewhere.
  const effect = drain || isDrained ? 'NoSelect' : 'NoSelectIfNew';
  if (before?.effect === effect && before.value === closed) return [...live];
  const ours = { key: TAINT, value: closed, effect };
  return before ? live.map((one) => (one.key === TAINT ? ours : one)) : [...live, ours];
}

const NEEDED = ['HubAcceptedManagedCluster', 'ManagedClusterJoined', 'ManagedClusterConditionAvailable'];

/** Why the hub does not use the cluster yet, a sentence; undefined: it does. Pure. */
export function whyNotAvailable(name: string, live: ManagedCluster | undefined): string | undefined {
  const conditions = live?.status?.conditions ?? [];
  const isTrue = (type: string) => conditions.some((one) => one.type === type && one.status === 'True');
  const missing = NEEDED.find((type) => !isTrue(type));
  if (!missing) return undefined;
  const said = conditions.find(({ type }) => type === missing)?.message;
  return `ManagedCluster ${name} is not ${missing} yet: ${said ?? 'its agent has not reported'}`;
}

/** Total capacity reported to the hub, which never knows the free amount. Pure. */
export const amountsIn = (cluster: ManagedCluster | undefined): HubAmounts =>
  hubAmountsOf(cluster?.status?.allocatable);
