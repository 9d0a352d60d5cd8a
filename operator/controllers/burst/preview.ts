import type { BurstPolicy } from '../../api/burstpolicy.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import { errorText } from '../../api/errors.ts';
import type { Hub } from '../../api/hub.ts';
import type { Membership } from '../../api/membership.ts';
import { KUBECONFIG_KEY, kubeconfigSecretName } from '../../api/names.ts';
import type { Quota } from '../../api/quota.ts';
import type { Shoot } from '../../api/shoot.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { clustersIn } from '../../burst/clusters/receipt.ts';
import type { OpenCluster } from '../../clusters/open-clusters.ts';
import { hubType } from '../../hubs/index.ts';
import { KubeClient } from '../../kube/client.ts';
import { Informer } from '../../kube/informer.ts';
import { silent } from '../../kube/log.ts';
import {
  BURSTPOLICIES,
  CLOUDPROFILES,
  decodeSecret,
  HUBS,
  keyOf,
  MEMBERSHIPS,
  NODES,
  type Node,
  PODS,
  type Pod,
  QUOTAS,
  SECRETS,
  type Secret,
  SHOOTS,
  WORKERCLUSTERS,
} from '../../kube/resources.ts';
import { byNamespace } from '../by-namespace.ts';
import { DECIDED_SELECTOR, DecidedSizes } from '../decided-sizes.ts';
import { BY_HUB } from '../membership/dependencies.ts';
import { clusterOf } from '../membership/holds.ts';
import { HubConnections } from '../membership/hub-connections.ts';
import { readerOf } from '../membership/two-sides.ts';
import { reconcileBurst } from './controller.ts';
import { type BurstDependencies, type BurstSightDependencies, burstReceipts } from './dependencies.ts';
import { dryRunWorld } from './dry-run-world.ts';
import { gardenSight, keptReceipts } from './garden-world.ts';
import { hearHub } from './hear-hub.ts';
import { BurstMemory } from './memory.ts';
import { idleKey, underusedKey } from './own-clusters.ts';
import { soldOutToldBy } from './sold-out-told.ts';
import { ToldByHubs } from './told.ts';
import { toldStatus } from './told-status.ts';
import type { BurstActs } from './world.ts';

const ANSWER_MS = 15_000;

/** Policies' decisions in a preview. */
interface Previewed {
  /** With the status that a cycle would write: its decisions are those of this preview. */
  readonly policies: readonly BurstPolicy[];
  /** Parts that could not be read, with reasons: sentences. They count as no room. */
  readonly gaps: readonly string[];
}

/**
 * What a garden's policies would decide now if waiting work had waited long enough, computed by the operator's own
 * controller without writes. Policies of a hub run in order, so that none gets work of an older one. Throws as
 * KubeClient does.
 * @param namespace the operator's, with kubeconfigs of hubs and receipts of policies
 * @param isAsked selects the reported policies
 */
export async function previewBurst(
  garden: KubeClient,
  namespace: string,
  provider: BurstDependencies['provider'],
  isAsked: (policy: BurstPolicy) => boolean,
  signal: AbortSignal,
): Promise<Previewed> {
  const ends: (() => Promise<unknown>)[] = [];
  try {
    const informers = cachesOf(garden, namespace);
    for (const informer of Object.values(informers)) {
      informer.start();
      ends.push(() => informer.stop());
    }
    await Promise.all(Object.values(informers).map((informer) => informer.whenSynced(signal)));
    const { items } = await garden.list<BurstPolicy>(BURSTPOLICIES, { signal });
    const lasting = items.filter(({ metadata }) => !metadata.deletionTimestamp);
    const asked = lasting.filter(isAsked);
    const hubs = new Set(asked.map(({ spec }) => spec.hub));
    const beside = lasting.filter(({ spec }) => hubs.has(spec.hub));
    const gaps: string[] = [];
    const opened = await openMembers(garden, informers, hubs, gaps, ends, signal);
    const connections = new HubConnections(garden, namespace, silent, () => {});
    ends.push(() => connections.closeAll());
    const told = new Map<string, BurstPolicy>();
    const byUid = new Map(beside.map((policy) => [policy.metadata.uid, policy]));
    const deps = dependenciesOf(garden, namespace, provider, informers, beside, opened, connections);
    const receipts = keptReceipts(burstReceipts(garden, namespace));
    const world = dryRunWorld(
      gardenSight(deps),
      beside.map(previewed),
      receipts,
      (policy, outcome) => {
        const { uid = '' } = policy.metadata;
        told.set(uid, { ...byUid.get(uid)!, status: toldStatus(deps, policy, outcome) });
      },
      (policy, error) => gaps.push(`BurstPolicy ${keyOf(policy)}: ${errorText(error)}`),
    );
    const memory = await memoryOf(beside, receipts, signal);
    for (const hub of hubs) await reconcileBurst(world, memory, hub, signal);
    return { policies: asked.map((policy) => told.get(policy.metadata.uid ?? '') ?? policy), gaps };
  } finally {
    for (const end of ends.toReversed()) await end();
  }
}

const cachesOf = (garden: KubeClient, namespace: string) => ({
  clusters: new Informer<WorkerCluster>(garden, WORKERCLUSTERS, { indexes: byNamespace }),
  shoots: new Informer<Shoot>(garden, SHOOTS, { indexes: byNamespace }),
  profiles: new Informer<CloudProfile>(garden, CLOUDPROFILES),
  quotas: new Informer<Quota>(garden, QUOTAS, { indexes: byNamespace }),
  hubs: new Informer<Hub>(garden, HUBS),
  decidedSecrets: new Informer<Secret>(garden, SECRETS, { fieldSelector: DECIDED_SELECTOR, namespace }),
  memberships: new Informer<Membership>(garden, MEMBERSHIPS, { indexes: { [BY_HUB]: ({ spec }) => [spec.hub] } }),
});
type Caches = ReturnType<typeof cachesOf>;

/** Idle times of clusters from the statuses that the operator wrote. */
async function memoryOf(
  policies: readonly BurstPolicy[],
  receipts: Pick<BurstActs['receipts'], 'read'>,
  signal: AbortSignal,
): Promise<BurstMemory> {
  const memory = new BurstMemory();
  for (const policy of policies) {
    // Invalid receipts are reported by their policy.
    const receipt = await receipts.read(keyOf(policy), signal).catch(() => undefined);
    for (const { name, number } of receipt ? clustersIn(receipt) : []) {
      const { idleSince } = policy.status?.clusters?.find((one) => one.name === name) ?? {};
      // Underused times are not in the status: assume long enough, as for waiting work.
      memory.idle(underusedKey(policy, number), true, 0);
      if (idleSince) memory.idle(idleKey(policy, number), true, Date.parse(idleSince));
    }
  }
  return memory;
}

/** The policy for a preview: waiting work has waited long enough. */
const previewed = (policy: BurstPolicy): BurstPolicy => ({
  ...policy,
  // Without a status, nothing counts as reported.
  status: undefined,
  // A stored policy could not have a zero duration.
  spec: { ...policy.spec, dryRun: true, trigger: { ...policy.spec.trigger, pendingFor: '0s' } },
});

/** Dependencies of the operator's controller for a preview. */
function dependenciesOf(
  garden: KubeClient,
  namespace: string,
  provider: BurstDependencies['provider'],
  caches: Caches,
  beside: readonly BurstPolicy[],
  opened: ReadonlyMap<string, OpenCluster>,
  connections: HubConnections,
): BurstSightDependencies {
  const byUid = new Map(beside.map((policy) => [policy.metadata.uid ?? '', policy]));
  const sizes = new DecidedSizes(garden, namespace, caches.decidedSecrets);
  const first = new ToldByHubs();
  return {
    ...caches,
    garden,
    policies: { byIndex: () => [] },
    openClusters: { get: (key) => opened.get(key) },
    provider,
    granted: new Map(),
    capacity: soldOutToldBy(beside),
    sizes,
    decided: (cluster) => sizes.get(keyOf(cluster), cluster.metadata.uid ?? ''),
    claims: ({ metadata }) => !byUid.get(metadata.uid ?? '')?.spec.dryRun,
    now: () => new Date(),
    async hear({ metadata: { name }, spec, status }, stop) {
      const type = hubType(spec.type);
      if (!type?.demand) return { demands: undefined };
      const { client } = await connections.open(name, spec, status?.clusterIdentity, stop);
      // Questions are not answered, so they are not read.
      const silent = { ...type, asks: undefined };
      const { demands = [], placed } = await hearHub(silent, readerOf(client, stop), spec, name);
      return { demands: first.once(name, status?.clusterIdentity ?? name, demands, Date.now()), placed };
    },
    async placedWork({ metadata: { name }, spec, status }, member, stop) {
      const type = hubType(spec.type);
      if (!type?.placedWork) return undefined;
      const { client } = await connections.open(name, spec, status?.clusterIdentity, stop);
      return type.placedWork(readerOf(client, stop), spec, member);
    },
  };
}

async function openMembers(
  garden: KubeClient,
  { memberships, clusters }: Caches,
  hubs: ReadonlySet<string>,
  gaps: string[],
  ends: (() => Promise<unknown>)[],
  signal: AbortSignal,
): Promise<Map<string, OpenCluster>> {
  const keys = [...hubs].flatMap((hub) =>
    memberships.byIndex(BY_HUB, hub).flatMap((one) => (one.status?.state === 'Joined' ? [clusterOf(one)] : [])),
  );
  const found = new Map<string, OpenCluster>();
  await Promise.all(
    [...new Set(keys)].map(async (key) => {
      const cluster = clusters.get(key);
      if (!cluster) return;
      try {
        const stop = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]);
        const client = await clientOf(garden, cluster, stop);
        ends.push(() => client.close());
        const [nodes, pods] = await Promise.all([
          client.list<Node>(NODES, { signal: stop }),
          client.list<Pod>(PODS, { signal: stop }),
        ]);
        found.set(key, {
          client,
          server: client.server,
          answers: true,
          nodes: { list: () => nodes.items },
          pods: { list: () => pods.items },
          onStop: () => {},
        });
      } catch (error) {
        signal.throwIfAborted();
        gaps.push(`WorkerCluster ${key}: ${errorText(error)}`);
      }
    }),
  );
  return found;
}

async function clientOf(
  garden: KubeClient,
  { metadata, status }: WorkerCluster,
  signal: AbortSignal,
): Promise<KubeClient> {
  const { name = kubeconfigSecretName(metadata.name), key = KUBECONFIG_KEY } = status?.kubeconfigRef ?? {};
  const secret = await garden.get<Secret>(SECRETS, name, metadata.namespace, { signal });
  const client = KubeClient.fromKubeconfig(decodeSecret(secret.data)[key] ?? '', undefined, {
    source: `Secret ${name}`,
  });
  // Tenants write the kubeconfig: connect from an administrator's machine only where the operator has connected.
  if (status?.mode !== 'Attached' || status.endpoint === client.server) return client;
  await client.close();
  throw new Error(`its kubeconfig points to ${client.server}, to which the operator has not connected yet`);
}
