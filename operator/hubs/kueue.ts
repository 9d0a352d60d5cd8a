import { findCondition } from '../api/conditions.ts';
import { GROUP, LABELS } from '../api/group.ts';
import type { HubSpec } from '../api/hub.ts';
import type { Condition } from '../api/meta.ts';
import { kubeconfigSecretName } from '../api/names.ts';
import {
  conditionIsTrue,
  decoded,
  type KubeObject,
  keyOf,
  type Resource,
  SECRETS,
  type Secret,
} from '../kube/resources.ts';
import {
  type ForeignEntry,
  type HubType,
  isForeign,
  type Member,
  type PlacedSource,
  type Reader,
  type Trace,
  takenOver,
  type Wanted,
} from './contract.ts';
import { type AdmissionCheck, askingOf, askWatch, ownChecks } from './kueue-admission.ts';
import { type DispatchedWorkload, firstJob, type Queues, waitingJobs, waitsFor } from './kueue-demand.ts';
import {
  ADMISSIONCHECKS,
  CLUSTERQUEUES,
  KUEUE_GROUP,
  LOCALQUEUES,
  MULTIKUEUE_CONTROLLER,
  MULTIKUEUECLUSTERS,
  MULTIKUEUECONFIGS,
  WORKLOADS,
} from './kueue-kinds.ts';
import { accountName, KUEUE_RULES } from './rights.ts';
import { kubeconfigOf, type SecretPlace, secretAt, secretWith, serverIn } from './secrets.ts';

/** In the list where no cluster takes work: Kueue takes no empty one, and stops at a name that there is no cluster of. */
export const NO_CLUSTER = 'coppice-no-cluster';
/** So many clusters Kueue takes in a list. */
const MOST_CLUSTERS = 20;
/** Which manager has made a Workload or a job in a cluster. */
export const ORIGIN = `${KUEUE_GROUP}/multikueue-origin`;
/** On a LocalQueue of the member that we have stopped: the Hub for which. One that a person has stopped is left alone. */
const STOPPED = `${LABELS.membership}-stopped-for`;
const ACCESS = 'access';
const KEY = 'kubeconfig';
const DAY = 24 * 3600;

/** Each stops more than the one before: nothing, what is new, what runs. */
const POLICIES = ['None', 'Hold', 'HoldAndDrain'] as const;
type StopPolicy = (typeof POLICIES)[number];
type LocalQueue = KubeObject & { spec?: { stopPolicy?: StopPolicy } };
type ClusterSpec = { clusterSource?: { kubeConfig?: { locationType?: string; location?: string } } };
type Conditioned = KubeObject & { status?: { conditions?: Condition[] } };
type Workload = Conditioned & { status?: { clusterName?: string } };

interface Seen {
  readonly cluster: Conditioned | undefined;
  readonly config: KubeObject | undefined;
  /** The member serves what Kueue writes there; taken for granted while it does not answer. */
  readonly hasKueue: boolean;
  /** Only when it leaves or sleeps: Workloads of the hub that run on it, as `namespace/name`. */
  readonly placed: readonly string[];
  /** LocalQueues of the member that the hub dispatches to. */
  readonly queues: readonly LocalQueue[];
  /** Only when it leaves: what Kueue has made in the member. */
  readonly left: readonly Trace[];
}

/** Kueue's MultiKueue: a cluster is a kubeconfig beside Kueue, a MultiKueueCluster, and a name in the list that jobs are dispatched by. */
export const kueueHub: HubType<Seen> = {
  type: 'Kueue',
  // Of the Secret, with its suffix, no more than a label takes.
  nameLimit: 52,
  watches: [MULTIKUEUECLUSTERS],
  dials: () => 'HubToMember',

  async validate(hub) {
    if (await hub.serves(MULTIKUEUECLUSTERS)) return [];
    return [`the hub serves no ${MULTIKUEUECLUSTERS.plural}.${KUEUE_GROUP}/v1beta2: install Kueue 0.15 or newer`];
  },

  // A changed Secret has Kueue connect anew, so a short-lived token will do.
  identities: (member) => [
    {
      name: ACCESS,
      on: 'member',
      account: { namespace: 'kube-system', name: accountName(member) },
      rules: KUEUE_RULES,
      life: DAY,
    },
  ],

  foreignEntry: foreignEntryIn,

  async observe(hub, inside, member, spec) {
    const leaves = member.closed === 'Leaving';
    const [cluster, config, hasKueue, placed, queues, left] = await Promise.all([
      hub.get(MULTIKUEUECLUSTERS, member.name) as Promise<Conditioned | undefined>,
      hub.get(MULTIKUEUECONFIGS, configName(member.hubName, spec)),
      inside?.serves(WORKLOADS) ?? true,
      leaves || member.closed === 'Asleep' ? placedOn(hub, member.name) : [],
      inside ? queuesOf(hub, inside) : [],
      inside && leaves ? leftIn(inside, spec) : [],
    ]);
    return { cluster, config, hasKueue, placed, queues, left };
  },

  join(member, spec, { cluster, config, hasKueue, placed, queues }) {
    const token = member.credentials[ACCESS]?.token;
    const lacks = hasKueue
      ? undefined
      : `the cluster serves no ${WORKLOADS.plural}.${KUEUE_GROUP}/v1beta2: install Kueue in it`;
    const isFull = listFor(member, config, true).length > MOST_CLUSTERS;
    const sleeps = member.closed === 'Asleep';
    // What runs on one that sleeps waits there.
    const list = listFor(member, config, !member.closed || (sleeps && placed.length > 0));
    const name = configName(member.hubName, spec);
    // Of two that come first and at once, both make the list: the one that lost would be in the hub and get no jobs.
    const isMissed = !member.closed && !listIn(config).includes(member.name);
    return [
      { type: 'IdentityReady' },
      {
        type: 'CredentialsReady',
        apply: token ? [secretWith(secretPlace(member, spec), { [KEY]: kubeconfigOf(member, token) })] : [],
      },
      {
        type: 'Registered',
        apply: lacks ? [] : [clusterObject(member, spec), admissionCheck(member, spec)],
        waiting: lacks ?? whyNotActive(member.name, cluster),
      },
      {
        type: 'CapacityVisible',
        apply: isFull
          ? []
          : [...listWanted(member, spec, config, list), ...queuesAs(member, queues, sleeps ? 'Hold' : undefined)],
        waiting: isFull
          ? `MultiKueueConfig ${name} has ${MOST_CLUSTERS} clusters, the most that Kueue takes`
          : isMissed
            ? `MultiKueueConfig ${name} does not name ${member.name} yet`
            : undefined,
      },
    ];
  },

  leave(member, spec, { config, placed, queues, left }) {
    const isListed = listIn(config).includes(member.name);
    const runs = placed.length > 0 && member.answers;
    return [
      // Kueue sees to what runs on the clusters of its list only. Of one that it takes no more, jobs would run on, and elsewhere as well.
      { places: [], apply: isListed && runs ? queuesAs(member, queues, 'HoldAndDrain') : [] },
      {
        places: [],
        apply: isListed ? listWanted(member, spec, config, listFor(member, config, false)) : [],
        waiting: isListed && runs ? `Kueue takes back Workload ${placed.join(', ')}` : undefined,
      },
      {
        places: [],
        sweep: left,
        waiting: isListed ? `Kueue is told that ${member.name} takes no work any more` : undefined,
      },
      {
        apply: queuesAs(member, queues),
        places: [{ on: 'hub', resource: MULTIKUEUECLUSTERS, name: member.name }],
      },
      { places: [secretPlace(member, spec)] },
    ];
  },

  drains: (spec) => (spec.kueue?.evicts ? 'Moves' : 'Waits'),
  // To take its name off the list would end what runs there: Kueue takes a job whose cluster is not listed for lost.
  cordon: (member, _spec, { config, queues }) =>
    listIn(config).includes(member.name) ? queuesAs(member, queues, 'Hold') : [],
  drain: (member, spec, { queues }) => (spec.kueue?.evicts ? queuesAs(member, queues, 'HoldAndDrain') : []),
  placements: (_member, { placed }) => placed.map((key) => `Workload ${key}`),

  async demand(hub, spec, hubName) {
    const name = configName(hubName, spec);
    const [config, clusters, workloads, checks] = await Promise.all([
      hub.get(MULTIKUEUECONFIGS, name),
      hub.list(MULTIKUEUECLUSTERS) as Promise<Conditioned[]>,
      hub.list(WORKLOADS) as Promise<DispatchedWorkload[]>,
      hub.list(ADMISSIONCHECKS) as Promise<AdmissionCheck[]>,
    ]);
    const listed = listIn(config);
    const asked = new Map(
      clusters
        .filter((one) => listed.includes(one.metadata.name) && whyNotActive('', one) === undefined)
        .map((one) => [one.metadata.name, findCondition(one.status?.conditions, 'Active')?.lastTransitionTime]),
    );
    const waiting = waitingJobs(workloads, name, asked, ownChecks(checks));
    if (asked.size > 0 || waiting.length > 0) return waiting;
    const [local, cluster] = await Promise.all([
      hub.list(LOCALQUEUES) as Promise<Queues['local']>,
      hub.list(CLUSTERQUEUES) as Promise<Queues['cluster']>,
    ]);
    const active = checks.filter((one) => conditionIsTrue(one, 'Active')).map(({ metadata }) => metadata.name);
    return firstJob(workloads, name, active, { local, cluster });
  },
  placed: async (hub) => placedIn((await hub.list(WORKLOADS)) as Workload[]),
  demandWatch: { resources: [WORKLOADS, CLUSTERQUEUES], says: waitsFor },

  async asks(hub, spec, hubName) {
    const checks = (await hub.list(ADMISSIONCHECKS)) as AdmissionCheck[];
    if (ownChecks(checks).length === 0) return undefined;
    const workloads = (await hub.list(WORKLOADS)) as DispatchedWorkload[];
    return askingOf(checks, workloads, configName(hubName, spec), hubName);
  },
  askWatch,
};

const configName = (hubName: string, { kueue }: HubSpec): string => kueue?.config ?? hubName;
const secretPlace = ({ name }: Member, { kueue }: HubSpec): SecretPlace =>
  secretAt(kueue?.namespace ?? 'kueue-system', kubeconfigSecretName(name));

const wanted = (resource: Resource, object: Pick<KubeObject, 'metadata' | 'spec'>): Wanted => ({
  on: 'hub',
  resource,
  object: { apiVersion: `${KUEUE_GROUP}/v1beta2`, kind: resource.kind, ...object },
});

/** Kueue looks at neither its labels nor its annotations: they are for whoever sets the quotas of the hub's ClusterQueues. */
function clusterObject(member: Member, spec: HubSpec): Wanted {
  const { name, labels, capacity } = member;
  const amounts = Object.entries(capacity).map(([resource, amount]) => [`${GROUP}/capacity.${resource}`, amount]);
  return wanted(MULTIKUEUECLUSTERS, {
    metadata: { name, labels, annotations: Object.fromEntries(amounts) },
    spec: { clusterSource: { kubeConfig: { locationType: 'Secret', location: secretPlace(member, spec).name } } },
  });
}

/** Why jobs cannot be dispatched to the cluster yet, a sentence; undefined: they can. */
function whyNotActive(name: string, cluster: Conditioned | undefined): string | undefined {
  const active = cluster?.status?.conditions?.find(({ type }) => type === 'Active');
  if (!active) return `Kueue has not looked at MultiKueueCluster ${name} yet`;
  return active.status === 'True'
    ? undefined
    : `MultiKueueCluster ${name} is not Active: ${active.message ?? active.reason}`;
}

/** What ClusterQueues of the hub name to have their jobs dispatched. */
function admissionCheck(member: Member, spec: HubSpec): Wanted {
  const name = configName(member.hubName, spec);
  const parameters = { apiGroup: KUEUE_GROUP, kind: MULTIKUEUECONFIGS.kind, name };
  const check = { metadata: { name }, spec: { controllerName: MULTIKUEUE_CONTROLLER, parameters } };
  return { ...wanted(ADMISSIONCHECKS, check), shared: true };
}

const listIn = (config: KubeObject | undefined): string[] =>
  (config?.spec as { clusters?: string[] } | undefined)?.clusters ?? [];

/** The list with the member or without it; others stay in their order, which says whom Kueue asks first. */
function listFor({ name }: Member, config: KubeObject | undefined, takesWork: boolean): string[] {
  const before = listIn(config).filter((one) => one !== NO_CLUSTER);
  if (!takesWork) return before.filter((one) => one !== name);
  return before.includes(name) ? before : [...before, name];
}

/** Written only where it differs, and only over what was seen: a cluster that another membership has just added stays in it. */
function listWanted(member: Member, spec: HubSpec, config: KubeObject | undefined, list: string[]): Wanted[] {
  const clusters = list.length > 0 ? list : [NO_CLUSTER];
  if (config && clusters.join() === listIn(config).join()) return [];
  const { resourceVersion } = config?.metadata ?? {};
  const metadata = { name: configName(member.hubName, spec), ...(resourceVersion && { resourceVersion }) };
  return [{ ...wanted(MULTIKUEUECONFIGS, { metadata, spec: { clusters } }), shared: true }];
}

/** LocalQueues that both have under one name: by those, and no others, jobs come from the hub. */
async function queuesOf(hub: Reader, inside: Reader): Promise<LocalQueue[]> {
  const [theirs, ours] = await Promise.all([hub.list(LOCALQUEUES), inside.list(LOCALQUEUES)]);
  const dispatched = new Set(theirs.map(keyOf));
  return ours.filter((queue) => dispatched.has(keyOf(queue)));
}

/** @param policy undefined: those that we have stopped take work again */
function queuesAs({ hubName }: Member, queues: readonly LocalQueue[], policy?: StopPolicy): Wanted[] {
  return queues.flatMap(({ metadata, spec }) => {
    const { namespace = '', name, resourceVersion = '', annotations } = metadata;
    const stopped = spec?.stopPolicy ?? 'None';
    const isOurs = annotations?.[STOPPED] === hubName;
    const isMore = POLICIES.indexOf(policy ?? 'None') > POLICIES.indexOf(stopped);
    if (policy ? !isMore || !(isOurs || stopped === 'None') : !isOurs) return [];
    const mine = policy && { annotations: { [STOPPED]: hubName } };
    const object = {
      metadata: { namespace, name, resourceVersion, ...mine },
      spec: policy ? { stopPolicy: policy } : {},
    };
    return [{ ...wanted(LOCALQUEUES, object), on: 'member' as const, shared: true as const }];
  });
}

/** A MultiKueueCluster of somebody else's, known by the URL in the kubeconfig that it names. */
async function foreignEntryIn(hub: Reader, member: Member, spec: HubSpec): Promise<ForeignEntry | undefined> {
  for (const one of (await hub.list(MULTIKUEUECLUSTERS)).filter(isForeign)) {
    const { locationType, location = '' } = (one.spec as ClusterSpec | undefined)?.clusterSource?.kubeConfig ?? {};
    if (locationType !== 'Secret') continue;
    const place = secretAt(secretPlace(member, spec).namespace, location);
    const secret = (await hub.get(SECRETS, place.name, place.namespace)) as Secret | undefined;
    if (serverIn(decoded(secret?.data)[KEY]) !== member.endpoint.server) continue;
    // Whoever made it has lists of clusters that name it: without it Kueue stops at them, and dispatches to none of their clusters.
    const whyNot = `MultiKueueCluster ${one.metadata.name} of the hub is named by lists of somebody else's`;
    return { name: one.metadata.name, places: [takenOver(MULTIKUEUECLUSTERS, one)], whyNot };
  }
  return undefined;
}

async function placedOn(hub: Reader, cluster: string): Promise<string[]> {
  const workloads = (await hub.list(WORKLOADS)) as Workload[];
  return workloads.filter((one) => one.status?.clusterName === cluster && !isFinished(one)).map(keyOf);
}

const isFinished = ({ status }: Workload): boolean =>
  status?.conditions?.some(({ type, status: is }) => type === 'Finished' && is === 'True') ?? false;

/** Jobs, and the cluster that has taken each: to which clusters a job is offered places it nowhere. Pure. */
const placedIn = (workloads: readonly Workload[]): PlacedSource[] =>
  workloads.flatMap((one): PlacedSource[] => {
    const { clusterName } = one.status ?? {};
    if (!clusterName || isFinished(one)) return [];
    const { namespace = '', ownerReferences = [] } = one.metadata;
    const job = ownerReferences.find(({ controller }) => controller) ?? ownerReferences[0];
    return [
      {
        source: `Workload ${keyOf(one)}`,
        members: [clusterName],
        ...(job && { workload: { namespace, name: job.name } }),
        isDivided: true,
      },
    ];
  });

/** Its jobs before the Workloads that count them: of a Workload alone Kueue would let the job go on. */
async function leftIn(inside: Reader, { kueue }: HubSpec): Promise<Trace[]> {
  const labels = { [ORIGIN]: kueue?.origin ?? 'multikueue' };
  const workloads = await inside.list(WORKLOADS, { labelSelector: `${ORIGIN}=${labels[ORIGIN]}` });
  const traces = workloads.map(({ metadata }): Trace[] => {
    const { namespace = '', name, ownerReferences = [] } = metadata;
    const jobs = ownerReferences.map(({ apiVersion, kind: owner, name: job }): Trace => {
      const [version = '', group = ''] = apiVersion.split('/').reverse();
      // The plural of every kind that Kueue runs is made so.
      const resource = { group, version, plural: `${owner.toLowerCase()}s`, kind: owner, namespaced: true };
      return { on: 'member', resource, namespace, name: job, labels };
    });
    return [...jobs, { on: 'member', resource: WORKLOADS, namespace, name, labels }];
  });
  return traces.flat();
}
