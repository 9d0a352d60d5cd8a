import { GROUP, LABELS } from '../api/group.ts';
import type { HubSpec } from '../api/hub.ts';
import type { KubeObject, Resource } from '../kube/resources.ts';
import { amountsOf } from './amounts.ts';
import type { Amounts, Member, Wanted } from './contract.ts';
import { rangeNotes } from './range-notes.ts';

/** Domain of the groups and labels of Open Cluster Management. */
export const DOMAIN = 'open-cluster-management.io';
/** Label of what the hub has for a cluster. */
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

/** Ours, whatever else has tainted the cluster. */
export const TAINT = `${GROUP}/membership-closed`;

interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
  readonly timeAdded?: string;
}

/** A ManagedCluster, as far as it is read here. */
export interface ManagedCluster extends KubeObject {
  spec?: { taints?: readonly Taint[] };
  status?: {
    allocatable?: Record<string, string>;
    conditions?: readonly { type: string; status: string; message?: string }[];
  };
}

/** Whether it was made for this cluster by a Coppice; the hub's namespace of somebody else's would be taken for a trace of ours. Pure. */
export const isOurs = ({ id }: Member, cluster: ManagedCluster | undefined): boolean =>
  cluster?.metadata.labels?.[LABELS.membership] !== undefined && cluster.metadata.labels[LABELS.memberIdentity] === id;

/**
 * The ManagedCluster of a member, as it should be now. Pure.
 * @param drain have the hub take it out of PlacementDecisions; it stays so until the cluster is gone, or wakes
 */
export function managedCluster(
  member: Member,
  { openClusterManagement }: HubSpec,
  live: ManagedCluster | undefined,
  drain = false,
): Wanted {
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
        // A cluster that leaves because its labels have changed keeps them there: without them a Placement would drop it undrained.
        labels: closed === 'Leaving' ? (live?.metadata.labels ?? {}) : shown,
        annotations: rangeNotes(ranges),
      },
      spec: {
        hubAcceptsClient: true,
        leaseDurationSeconds: 60,
        managedClusterClientConfigs: [
          { url: endpoint.server, ...(endpoint.ca && { caBundle: Buffer.from(endpoint.ca).toString('base64') }) },
        ],
        taints: taints(live?.spec?.taints ?? [], closed, drain),
      },
    },
  };
}

/**
 * The list has one owner: taints of the hub and of people are repeated where they stand, with the time that the hub's webhook gave them. Ours
 * has none when it is new or changed; the webhook refuses one. Pure.
 */
export function taints(live: readonly Taint[], closed: Member['closed'], drain: boolean): Taint[] {
  const before = live.find(({ key }) => key === TAINT);
  const others = () => live.filter(({ key }) => key !== TAINT);
  if (!closed) return others();
  const isDrained = before?.value === closed && before.effect === 'NoSelect';
  // NoSelectIfNew leaves PlacementDecisions as they are. With NoSelect what was placed ends, and is placed elsewhere.
  const effect = drain || isDrained ? 'NoSelect' : 'NoSelectIfNew';
  if (before?.effect === effect && before.value === closed) return [...live];
  const ours = { key: TAINT, value: closed, effect };
  return before ? live.map((one) => (one.key === TAINT ? ours : one)) : [...live, ours];
}

const NEEDED = ['HubAcceptedManagedCluster', 'ManagedClusterJoined', 'ManagedClusterConditionAvailable'];

/** Why the hub does not count on the cluster yet, a sentence; undefined: it does. Pure. */
export function whyNotAvailable(name: string, live: ManagedCluster | undefined): string | undefined {
  const conditions = live?.status?.conditions ?? [];
  const isTrue = (type: string) => conditions.some((one) => one.type === type && one.status === 'True');
  const missing = NEEDED.find((type) => !isTrue(type));
  if (!missing) return undefined;
  const said = conditions.find(({ type }) => type === missing)?.message;
  return `ManagedCluster ${name} is not ${missing} yet: ${said ?? 'its agent has not reported'}`;
}

/** What the hub was told that the cluster offers in all; the hub never knows what is free. Pure. */
export const amountsIn = (cluster: ManagedCluster | undefined): Amounts => amountsOf(cluster?.status?.allocatable);
