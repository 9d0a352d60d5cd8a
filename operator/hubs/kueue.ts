import { findCondition } from '../api/conditions.ts';
import { GROUP, LABELS } from '../api/group.ts';
import type { HubSpec } from '../api/hub.ts';
import type { Condition } from '../api/meta.ts';
import { kubeconfigSecretName } from '../api/names.ts';
import {
  conditionIsTrue,
  decodeSecret,
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
  type WantedObject,
} from './contract.ts';
import { type AdmissionCheck, askingOf, askWatch, ownChecks } from './kueue-admission.ts';
import { type DispatchedWorkload, firstJob, kueueWaitsFor, type Queues, waitingJobs } from './kueue-demand.ts';
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

/**
 * Placeholder in the list while no cluster takes jobs: Kueue rejects an empty list, and dispatches nothing for an
 * unknown name.
 */
export const NO_CLUSTER = 'coppice-no-cluster';
/** Clusters that Kueue permits in a list. */
const MOST_CLUSTERS = 20;
/** Label with the manager that created a Workload or job in a cluster. */
export const ORIGIN = `${KUEUE_GROUP}/multikueue-origin`;
/**
 * Annotation with the Hub for which Coppice stopped a LocalQueue of the member. A queue stopped by a person is left
 * alone.
 */
const STOPPED = `${LABELS.membership}-stopped-for`;
const ACCESS = 'access';
const KEY = 'kubeconfig';
const DAY = 24 * 3600;

/** Each policy stops more than the one before: nothing, new jobs, running jobs. */
const POLICIES = ['None', 'Hold', 'HoldAndDrain'] as const;
type StopPolicy = (typeof POLICIES)[number];
type LocalQueue = KubeObject & { spec?: { stopPolicy?: StopPolicy } };
type ClusterSpec = { clusterSource?: { kubeConfig?: { locationType?: string; location?: string } } };
type Conditioned = KubeObject & { status?: { conditions?: Condition[] } };
type Workload = Conditioned & { status?: { clusterName?: string } };

interface Seen {
  readonly cluster: Conditioned | undefined;
  readonly config: KubeObject | undefined;
  /** Whether the member serves Kueue's kinds; assumed while it does not answer. */
  readonly hasKueue: boolean;
  /** Read only when it leaves or sleeps: Workloads of the hub that run on it, as `namespace/name`. */
  readonly placed: readonly string[];
  /** LocalQueues of the member that the hub dispatches to. */
  readonly queues: readonly LocalQueue[];
  /** Read only when it leaves: objects that Kueue created in the member. */
  readonly left: readonly Trace[];
}

/**
 * Kueue's MultiKueue: a cluster is a kubeconfig Secret in Kueue's namespace, a MultiKueueCluster, and a name in the
 * MultiKueueConfig that dispatches jobs.
 */
export const kueueHub: HubType<Seen> = {
  type: 'Kueue',
  // The Secret's name, with its suffix, must be a valid label.
  nameLimit: 52,
  watches: [MULTIKUEUECLUSTERS],
  dials: () => 'HubToMember',

  async validate(hub) {
    if (await hub.serves(MULTIKUEUECLUSTERS)) return [];
    return [`the hub serves no ${MULTIKUEUECLUSTERS.plural}.${KUEUE_GROUP}/v1beta2: install Kueue 0.15 or newer`];
  },

  // Kueue reconnects after a change of the Secret, so a short-lived token suffices.
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
    // Running jobs on a sleeping cluster wait there.
    const list = listFor(member, config, !member.closed || (sleeps && placed.length > 0));
    const name = configName(member.hubName, spec);
    // Two first members that join at once both create the list: the loser would be in the hub without getting jobs.
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
      // Kueue supervises running jobs only on listed clusters. Jobs of a cluster taken off the list would keep
      // running, and run elsewhere as well.
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
  // Removing its name from the list would end running jobs: Kueue considers a job of an unlisted cluster lost.
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
  demandWatch: { resources: [WORKLOADS, CLUSTERQUEUES], says: kueueWaitsFor },

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

const wanted = (resource: Resource, object: Pick<KubeObject, 'metadata' | 'spec'>): WantedObject => ({
  on: 'hub',
  resource,
  object: { apiVersion: `${KUEUE_GROUP}/v1beta2`, kind: resource.kind, ...object },
});

/** Kueue reads neither labels nor annotations: they are for whoever sets the quotas of the hub's ClusterQueues. */
function clusterObject(member: Member, spec: HubSpec): WantedObject {
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

/** The AdmissionCheck that ClusterQueues of the hub name to have their jobs dispatched. */
function admissionCheck(member: Member, spec: HubSpec): WantedObject {
  const name = configName(member.hubName, spec);
  const parameters = { apiGroup: KUEUE_GROUP, kind: MULTIKUEUECONFIGS.kind, name };
  const check = { metadata: { name }, spec: { controllerName: MULTIKUEUE_CONTROLLER, parameters } };
  return { ...wanted(ADMISSIONCHECKS, check), shared: true };
}

const listIn = (config: KubeObject | undefined): string[] =>
  (config?.spec as { clusters?: string[] } | undefined)?.clusters ?? [];

/** The list with or without the member; the others keep their order, in which Kueue offers jobs. */
function listFor({ name }: Member, config: KubeObject | undefined, takesWork: boolean): string[] {
  const before = listIn(config).filter((one) => one !== NO_CLUSTER);
  if (!takesWork) return before.filter((one) => one !== name);
  return before.includes(name) ? before : [...before, name];
}

/**
 * Written only where it differs, and only at the version read: a cluster that another membership has just added stays
 * listed.
 */
function listWanted(member: Member, spec: HubSpec, config: KubeObject | undefined, list: string[]): WantedObject[] {
  const clusters = list.length > 0 ? list : [NO_CLUSTER];
  if (config && clusters.join() === listIn(config).join()) return [];
  const { resourceVersion } = config?.metadata ?? {};
  const metadata = { name: configName(member.hubName, spec), ...(resourceVersion && { resourceVersion }) };
  return [{ ...wanted(MULTIKUEUECONFIGS, { metadata, spec: { clusters } }), shared: true }];
}

/** LocalQueues with one name on both sides: jobs are dispatched through these only. */
async function queuesOf(hub: Reader, inside: Reader): Promise<LocalQueue[]> {
  const [theirs, ours] = await Promise.all([hub.list(LOCALQUEUES), inside.list(LOCALQUEUES)]);
  const dispatched = new Set(theirs.map(keyOf));
  return ours.filter((queue) => dispatched.has(keyOf(queue)));
}

/** @param policy undefined: queues that Coppice stopped are resumed */
function queuesAs({ hubName }: Member, queues: readonly LocalQueue[], policy?: StopPolicy): WantedObject[] {
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

/** A foreign MultiKueueCluster, matched by the URL in its kubeconfig. */
async function foreignEntryIn(hub: Reader, member: Member, spec: HubSpec): Promise<ForeignEntry | undefined> {
  for (const one of (await hub.list(MULTIKUEUECLUSTERS)).filter(isForeign)) {
    const { locationType, location = '' } = (one.spec as ClusterSpec | undefined)?.clusterSource?.kubeConfig ?? {};
    if (locationType !== 'Secret') continue;
    const place = secretAt(secretPlace(member, spec).namespace, location);
    const secret = (await hub.get(SECRETS, place.name, place.namespace)) as Secret | undefined;
    if (serverIn(decodeSecret(secret?.data)[KEY]) !== member.endpoint.server) continue;
    // Foreign lists name it: without the cluster Kueue stops at such a list, and dispatches to none of its clusters.
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

/** Jobs and the cluster that has taken each; clusters that were only offered a job do not count. Pure. */
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

/** Jobs before the Workloads that count them: after a Workload's deletion alone Kueue would let its job continue. */
async function leftIn(inside: Reader, { kueue }: HubSpec): Promise<Trace[]> {
  const labels = { [ORIGIN]: kueue?.origin ?? 'multikueue' };
  const workloads = await inside.list(WORKLOADS, { labelSelector: `${ORIGIN}=${labels[ORIGIN]}` });
  const traces = workloads.map(({ metadata }): Trace[] => {
    const { namespace = '', name, ownerReferences = [] } = metadata;
    const jobs = ownerReferences.map(({ apiVersion, kind: owner, name: job }): Trace => {
      const [version = '', group = ''] = apiVersion.split('/').reverse();
      // The plurals of all kinds that Kueue runs follow this rule.
      const resource = { group, version, plural: `${owner.toLowerCase()}s`, kind: owner, namespaced: true };
      return { on: 'member', resource, namespace, name: job, labels };
    });
    return [...jobs, { on: 'member', resource: WORKLOADS, namespace, name, labels }];
  });
  return traces.flat();
}
