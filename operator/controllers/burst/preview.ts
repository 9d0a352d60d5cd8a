import type { BurstPolicy } from '../../api/burstpolicy.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import { errorText } from '../../api/errors.ts';
import type { Hub } from '../../api/hub.ts';
import type { Membership } from '../../api/membership.ts';
import { KUBECONFIG_KEY, kubeconfigSecretName } from '../../api/names.ts';
import type { Quota } from '../../api/quota.ts';
import type { Shoot } from '../../api/shoot.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { OpenCluster } from '../../clusters/open-clusters.ts';
import { hubType } from '../../hubs/index.ts';
import { KubeClient } from '../../kube/client.ts';
import { Informer } from '../../kube/informer.ts';
import { silent } from '../../kube/log.ts';
import { Registry } from '../../kube/metrics.ts';
import {
  BURSTPOLICIES,
  CLOUDPROFILES,
  decoded,
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
import { type BurstDependencies, burstReceipts } from './dependencies.ts';
import { hearHub } from './hear-hub.ts';
import { BurstMemory } from './memory.ts';
import { idleKey, underusedKey } from './own-clusters.ts';
import { toldBy } from './sold-out-told.ts';
import { ToldByHubs } from './told.ts';

const ANSWER_MS = 15_000;

/** What policies would decide now. */
export interface Previewed {
  /** With the status that a look would have given them: its decisions are those that this look has made. */
  readonly policies: readonly BurstPolicy[];
  /** What could not be looked at, and why: sentences. What is there counts as no room. */
  readonly gaps: readonly string[];
}

/**
 * What the policies of a garden would decide now, if what waits had waited long enough: decided by the operator's own controller, of which
 * nothing is written. Those of a hub come in turn, as with the operator: none has what an older one would serve, asked for or not. Throws as
 * KubeClient does.
 * @param namespace the operator's, where kubeconfigs of hubs and the receipts of policies are
 * @param isAsked of which policies it is to be said
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
    const deps = dependenciesOf(garden, namespace, provider, informers, beside, opened, connections, told);
    const memory = await memoryOf(beside, deps.receipts, signal);
    for (const hub of hubs) await reconcileBurst(deps, memory, hub, signal);
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

/** Since when clusters are without work the operator knows, and tells in the status. */
async function memoryOf(
  policies: readonly BurstPolicy[],
  receipts: BurstDependencies['receipts'],
  signal: AbortSignal,
): Promise<BurstMemory> {
  const memory = new BurstMemory();
  for (const policy of policies) {
    const { purchases = [] } = (await receipts.read(keyOf(policy), signal)) ?? {};
    for (const { name, number } of purchases) {
      const { idleSince } = policy.status?.clusters?.find((one) => one.name === name) ?? {};
      // Since when they have little work nobody tells: long enough, as what waits has waited long enough.
      memory.idle(underusedKey(policy, number), true, 0);
      if (idleSince) memory.idle(idleKey(policy, number), true, Date.parse(idleSince));
    }
  }
  return memory;
}

function dependenciesOf(
  garden: KubeClient,
  namespace: string,
  provider: BurstDependencies['provider'],
  caches: Caches,
  beside: readonly BurstPolicy[],
  opened: ReadonlyMap<string, OpenCluster>,
  connections: HubConnections,
  told: Map<string, BurstPolicy>,
): BurstDependencies {
  const policies = beside.map(
    (policy): BurstPolicy => ({
      ...policy,
      // Nothing is told where a status says it already.
      status: undefined,
      // A duration of nothing is refused in a policy that is kept.
      spec: { ...policy.spec, dryRun: true, trigger: { ...policy.spec.trigger, pendingFor: '0s' } },
    }),
  );
  const byUid = new Map(beside.map((policy) => [policy.metadata.uid ?? '', policy]));
  const readOnly = unwritten(garden, (object) => {
    const policy = byUid.get(object.metadata.uid ?? '');
    if (policy) told.set(object.metadata.uid ?? '', { ...policy, status: object.status as BurstPolicy['status'] });
  });
  const receipts = burstReceipts(readOnly, namespace);
  const sizes = new DecidedSizes(readOnly, namespace, caches.decidedSecrets);
  const read = receipts.read.bind(receipts);
  // What was decided before is not told again: all decisions are those of this look.
  receipts.read = async (key, stop) => {
    const kept = await read(key, stop);
    return kept && { ...kept, decisions: [] };
  };
  const first = new ToldByHubs();
  return {
    ...caches,
    garden: readOnly,
    policies: {
      get: (key: string) => policies.find((one) => keyOf(one) === key),
      byIndex: (_: string, hub: string) => policies.filter(({ spec }) => spec.hub === hub),
      absorb: () => {},
    } as unknown as BurstDependencies['policies'],
    openClusters: { get: (key) => opened.get(key) },
    provider,
    granted: new Map(),
    capacity: { ...toldBy(beside), interrupted: () => {} },
    sizes,
    decided: (cluster) => sizes.get(keyOf(cluster), cluster.metadata.uid ?? ''),
    receipts,
    metrics: new Registry(),
    claims: ({ metadata }) => !byUid.get(metadata.uid ?? '')?.spec.dryRun,
    now: () => new Date(),
    recordEvent: () => {},
    async hear({ metadata: { name }, spec, status }, stop) {
      const type = hubType(spec.type);
      if (!type?.demand) return { demands: undefined };
      const { client } = await connections.open(name, spec, status?.clusterIdentity, stop);
      // Nobody answers: what it asks is not read.
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

/** The same garden, on which whatever is written comes to nothing: what is made is only tried. */
function unwritten(garden: KubeClient, applied: (object: BurstPolicy) => void): KubeClient {
  const writes: Partial<Record<keyof KubeClient, unknown>> = {
    create: (object: never, options: object) => garden.create(object, { ...options, dryRun: true }),
    apply: async (object: BurstPolicy) => {
      applied(object);
      return object;
    },
    delete: async () => true,
    ...Object.fromEntries(
      ['mergePatch', 'jsonPatch', 'update', 'deleteCollection', 'evict'].map((one) => [one, nothing]),
    ),
  };
  return new Proxy(garden, {
    get: (target, key: keyof KubeClient) => {
      const value = writes[key] ?? target[key];
      return typeof value === 'function' ? (value as () => unknown).bind(target) : value;
    },
  });
}

const nothing = async () => undefined;

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
  const client = KubeClient.fromKubeconfig(decoded(secret.data)[key] ?? '', undefined, { source: `Secret ${name}` });
  // A tenant writes it: where the operator has not been by it we do not go from an administrator's machine.
  if (status?.mode !== 'Attached' || status.endpoint === client.server) return client;
  await client.close();
  throw new Error(`its kubeconfig points to ${client.server}, to which the operator has not connected yet`);
}
