// An example, to read and to try a BurstPolicy without a Karmada; no part of Coppice, and no scheduler for production.
//
//   KUBECONFIG=hub.yaml node examples/burst/scheduler.ts NAMESPACE/DEPLOYMENT
//
// It spreads a Deployment of the hub over the ClusterProfiles of the same namespace: copies of it, each with as many replicas as there is room
// for, in standing clusters first. In the hub the Deployment is `paused` from its beginning, so that it has no pods there. What is placed, and
// what has no place, stands in the PlacementDecision of the same name. The Hub has `clusterProfile: {namespace: NAMESPACE, rights: Manage}`. Hub and
// members are watched, and each change is acted on at once. A member that does not answer keeps it waiting, for all; one that sleeps, or is not
// open yet, is not asked.
import { createHash } from 'node:crypto';
import { formatBytes, formatCpu, parseBytes, parseCpu } from '../../operator/api/quantity.ts';
import { podRequestsOf } from '../../operator/burst/fit/requests.ts';
import { CLUSTERPROFILES } from '../../operator/hubs/cluster-profile.ts';
import { PLACEMENTDECISIONS } from '../../operator/hubs/placement-decisions.ts';
import { KubeClient } from '../../operator/kube/client.ts';
import * as kube from '../../operator/kube/resources.ts';
import { Members, Watched } from './watched.ts';

const NAME = 'example-scheduler';
const TEMPLATE = `${NAME}/template`;
const DOMAIN = 'multi-cluster.demo.io';
const AGAIN_MS = 1000;

type Requests = Record<string, string>;
/** How many replicas a cluster takes in all. A bought one gets what the standing ones have no room for. */
interface Room {
  readonly name: string;
  readonly replicas: number;
  readonly isBought: boolean;
}

/** How many replicas go where: by name of the profile. Pure. */
export function divided(rooms: readonly Room[], replicas: number): Map<string, number> {
  let left = replicas;
  const inOrder = [...rooms].sort((a, b) => Number(a.isBought) - Number(b.isBought) || (a.name < b.name ? -1 : 1));
  return new Map(
    inOrder.map(({ name, replicas: room }) => {
      const share = Math.min(room, left);
      left -= share;
      return [name, share];
    }),
  );
}

/** How many such replicas fit on nodes beside the pods of others. Pure. */
export function roomOn(nodes: readonly kube.Node[], others: readonly kube.Pod[], { cpu, memory }: Requests): number {
  const each = { cpu: parseCpu(cpu ?? '0'), memory: parseBytes(memory ?? '0'), pods: 1 };
  return nodes.reduce((sum, { metadata, spec, status }) => {
    const isOpen = status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
    if (!isOpen || spec.unschedulable || spec.taints?.some(({ effect }) => effect !== 'PreferNoSchedule')) return sum;
    const on = others.filter(
      (pod) => pod.spec.nodeName === metadata.name && !/^(Succ|Fail)/.test(pod.status?.phase ?? ''),
    );
    const used = (what: 'cpu' | 'memory') => on.reduce((all, pod) => all + podRequestsOf(pod)[what], 0);
    const offered = status?.allocatable ?? {};
    const free = {
      cpu: parseCpu(offered.cpu ?? '0') - used('cpu'),
      memory: parseBytes(offered.memory ?? '0') - used('memory'),
      pods: Number(offered.pods ?? 0) - on.length,
    };
    const fits = (['cpu', 'memory', 'pods'] as const).map((one) => (each[one] > 0 ? free[one] / each[one] : Infinity));
    return sum + Math.max(0, Math.floor(Math.min(...fits)));
  }, 0);
}

/** Value of a label, absent on profiles that take work: Initializing, Asleep, or Leaving, of which what was placed is taken away. */
const closedAs = ({ metadata }: kube.KubeObject) => metadata.labels?.[`${DOMAIN}/membership-closed`];

/** Whether a member takes work or gives it back: of others nobody knows that their API server runs. */
export const isAsked = (profile: kube.KubeObject): boolean => /^(Leaving)?$/.test(closedAs(profile) ?? '');

/** Makes the copy in a member what it is to be, or takes it away. */
async function place(
  client: KubeClient,
  { metadata, spec }: kube.Deployment,
  copy: kube.Deployment | undefined,
  replicas: number,
) {
  const { name, namespace } = metadata;
  const template = createHash('sha256').update(JSON.stringify(spec.template)).digest('hex');
  if (copy ? copy.spec.replicas === replicas && copy.metadata.annotations?.[TEMPLATE] === template : replicas === 0)
    return;
  if (replicas === 0) return void (await client.delete(kube.DEPLOYMENTS, name, namespace));
  const how = { fieldManager: NAME, force: true };
  if (!copy && namespace !== 'default')
    await client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace! } }, how);
  const { paused: _, ...rest } = spec;
  const kind = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace, annotations: { [TEMPLATE]: template } },
  };
  await client.apply({ ...kind, spec: { ...rest, replicas } }, how);
}

/** One look at all: says what it did when that is something new. */
async function look(hub: Watched, watched: Members, namespace: string, name: string, before: string): Promise<string> {
  const deployment = (await hub.list<kube.Deployment>(kube.DEPLOYMENTS)).find(({ metadata }) => metadata.name === name);
  if (!deployment) throw new Error(`there is no Deployment ${namespace}/${name}`);
  const wanted = deployment.metadata.deletionTimestamp ? 0 : (deployment.spec.replicas ?? 1);
  const { cpu, memory } = podRequestsOf({ spec: deployment.spec.template.spec });
  const asked = { cpu: formatCpu(cpu), memory: formatBytes(memory) };
  const labels = Object.entries(deployment.spec.selector.matchLabels ?? {});
  const isOurs = ({ metadata }: kube.Pod) =>
    metadata.namespace === namespace && labels.every(([key, value]) => metadata.labels?.[key] === value);
  const profiles = (await hub.list(CLUSTERPROFILES)).filter(isAsked);
  await watched.keep(profiles);
  const members = await Promise.all(
    profiles.map(async (profile) => {
      const member = await watched.of(profile);
      const nodes = await member.list<kube.Node>(kube.NODES);
      const others = (await member.list<kube.Pod>(kube.PODS)).filter((pod) => !isOurs(pod));
      const copies = await member.list<kube.Deployment>(kube.DEPLOYMENTS);
      return {
        name: profile.metadata.name,
        replicas: closedAs(profile) === undefined ? roomOn(nodes, others, asked) : 0,
        isBought: profile.metadata.labels?.[`${DOMAIN}/burst`] === 'true',
        client: member.client,
        copy: copies.find(({ metadata }) => metadata.name === name && metadata.namespace === namespace),
      };
    }),
  );
  const shares = divided(members, wanted);
  const unplaced = wanted - [...shares.values()].reduce((sum, share) => sum + share, 0);
  // Named as long as a copy is there: a cluster that leaves waits for that.
  const decisions = members
    .filter((one) => one.copy || shares.get(one.name))
    .map((one) => ({ clusterProfileRef: { name: one.name }, reason: `${shares.get(one.name)} replicas` }));
  // Also where all have a place: by it policies know that replicas are divided, and keep a cluster whose copy is still to be made.
  const annotations = { [`${DOMAIN}/unplaced`]: JSON.stringify({ replicas: unplaced, requests: asked }) };
  const decision = {
    apiVersion: 'multicluster.x-k8s.io/v1alpha1',
    kind: 'PlacementDecision',
    metadata: { name, namespace, annotations },
    schedulerName: NAME,
    decisions,
  };
  const text = JSON.stringify(decision);
  if (text !== before) {
    await hub.client.apply(decision, { resource: PLACEMENTDECISIONS, fieldManager: NAME, force: true });
    console.log(
      `${wanted} replicas: ${[...shares].map(([where, share]) => `${share} on ${where}`).join(', ')}, ${unplaced} without a place`,
    );
  }
  for (const { client, copy, name: where } of members) await place(client, deployment, copy, shares.get(where) ?? 0);
  return text;
}

if (import.meta.main) {
  const [namespace, name] = (process.argv[2] ?? '').split('/');
  if (!namespace || !name) throw new Error('say which Deployment: NAMESPACE/NAME');
  let news = Promise.withResolvers<void>();
  const changed = () => news.resolve();
  const client = KubeClient.fromEnvironment();
  const hub = new Watched(client, [kube.DEPLOYMENTS, CLUSTERPROFILES], changed, namespace);
  const members = new Members(client, changed);
  // Whoever started it with a channel to it has ended.
  process.once('disconnect', () => process.exit());
  for (let before = ''; ; await news.promise) {
    // What changes from here on is looked at once more.
    news = Promise.withResolvers<void>();
    before = await look(hub, members, namespace, name, before).catch((error: Error) => {
      console.error(error.message);
      setTimeout(changed, AGAIN_MS);
      return '';
    });
  }
}
