import type { BurstPolicy } from '../../../operator/api/burstpolicy.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import type { DecidedSizes } from '../../../operator/controllers/decided-sizes.ts';
import { RESOURCEBINDINGS } from '../../../operator/hubs/karmada/seen.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { BURSTPOLICIES, type KubeObject, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { runBurst, sellClusters } from './burst-beside.ts';
import { HubTestbed } from './hub-testbed.ts';
import { KarmadaStandIn } from './karmada-stand-in.ts';

/** Policies buy and empty clusters for a Karmada that is played on a real API server; all of it in namespace `shop`. */
export interface KarmadaBurst {
  readonly testbed: HubTestbed;
  /** What the operator that was started last has decided about sizes. */
  readonly sizes: () => DecidedSizes;
  readonly clusters: () => Promise<WorkerCluster[]>;
  /** Policy `peak`. */
  readonly policy: () => Promise<BurstPolicy | undefined>;
  /** A Deployment of three replicas that Karmada has no room for; or one that it has placed, so many replicas by cluster. */
  readonly bind: (placed?: Readonly<Record<string, number>>, app?: string) => Promise<void>;
}

/** @param prepare called before the hub is made and the operator started, with the rights that the chart gives and no more */
export async function startKarmadaBurst(
  karmada: { evicts?: boolean } = {},
  prepare: (testbed: HubTestbed) => Promise<void> = async () => {},
): Promise<KarmadaBurst> {
  const testbed = await HubTestbed.start(
    { type: 'Karmada', karmada: { renewsTokens: true, ...karmada } },
    ['karmada'],
    'chart',
  );
  const { client } = testbed.garden;
  const standIn = new KarmadaStandIn(client, testbed.member.client);
  await standIn.start();
  testbed.onStop(() => standIn.stop());
  for (const name of ['shop', 'karmada-cluster'])
    await client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  await sellClusters(client);
  // Karmada's own API server, with rights of its own there: here it is the same one.
  await client.apply({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'karmada', namespace: 'kube-system' },
    stringData: { value: testbed.garden.kubeconfig },
  });
  await prepare(testbed);
  const clusterSelector = { matchLabels: { fleet: 'production' } };
  await testbed.makeHub('test', { clusterSelector, kubeconfigRef: { name: 'karmada' } });
  let sizes: DecidedSizes;
  runBurst(testbed, (of) => {
    sizes = of;
  });
  await testbed.startOperator();
  return {
    testbed,
    sizes: () => sizes,
    clusters: async () => (await client.list<WorkerCluster>(WORKERCLUSTERS, { namespace: 'shop' })).items,
    policy: () => client.getOrUndefined<BurstPolicy>(BURSTPOLICIES, 'peak', 'shop'),
    bind: (placed = {}, app = 'web') => bind(client, app, placed),
  };
}

const DYNAMIC = {
  replicaSchedulingType: 'Divided',
  replicaDivisionPreference: 'Weighted',
  weightPreference: { dynamicWeight: 'AvailableReplicas' },
};

/** See KarmadaBurst.bind. */
export async function bind(client: KubeClient, app: string, placed: Readonly<Record<string, number>>): Promise<void> {
  const clusters = Object.entries(placed).map(([name, replicas]) => ({ name, replicas }));
  const binding: KubeObject = {
    apiVersion: 'work.karmada.io/v1alpha2',
    kind: 'ResourceBinding',
    metadata: { name: `${app}-deployment`, namespace: 'shop' },
    spec: {
      resource: { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'shop', name: app },
      replicas: clusters.reduce((sum, { replicas }) => sum + replicas, 0) || 3,
      replicaRequirements: { resourceRequest: { cpu: '1', memory: '1Gi' } },
      placement: { replicaScheduling: DYNAMIC },
      clusters,
    },
  };
  const { apiVersion, kind, metadata } = await client.apply(binding, { resource: RESOURCEBINDINGS, force: true });
  const scheduled =
    clusters.length > 0
      ? { status: 'True', reason: 'Success', message: '' }
      : { status: 'False', reason: 'Unschedulable', message: '0/0 clusters are available' };
  const conditions = [{ type: 'Scheduled', lastTransitionTime: '2026-11-23T12:00:00Z', ...scheduled }];
  await client.apply(
    { apiVersion, kind, metadata: { name: metadata.name, namespace: 'shop' }, status: { conditions } },
    { resource: RESOURCEBINDINGS, subresource: 'status', force: true },
  );
}
