import { isTrue } from '../../api/conditions.ts';
import { CoppiceError, errorText } from '../../api/errors.ts';
import { ALPHA_API_VERSION, API_VERSION, FINALIZER } from '../../api/group.ts';
import type { Hub, HubStatus } from '../../api/hub.ts';
import type { Membership } from '../../api/membership.ts';
import { membershipName } from '../../api/names.ts';
import { profileNameOf, type WorkerCluster } from '../../api/workercluster.ts';
import type { HubType } from '../../hubs/contract.ts';
import { hubType } from '../../hubs/index.ts';
import { KubeApiError } from '../../kube/errors.ts';
import { HUBS, keyOf, MEMBERSHIPS } from '../../kube/resources.ts';
import { say, withConditions } from '../conditions.ts';
import { hold } from '../finalizer.ts';
import { lacksControlPlane } from '../lacks-control-plane.ts';
import { writeStatus } from '../status-writer.ts';
import { BY_HUB, type MembershipDependencies } from './dependencies.ts';
import type { HubConnection } from './hub-connections.ts';
import { type Selection, selectMembers } from './selection.ts';
import { readerOf } from './two-sides.ts';

/** Interval of checking a reachable hub. */
const LOOK_AGAIN_MS = 5 * 60_000;
/** Interval of checking an unreachable one. */
const RETRY_MS = 15_000;
/** Cache time of a hub's answer: a thousand joining clusters ask once. Less than RETRY_MS. */
const ANSWER_IS_GOOD_MS = 10_000;
const NAMED = 5;
const AT_ONCE = 16;

/**
 * Maintains the connection to a hub, reports whether clusters can join, and creates and deletes memberships by its
 * selector.
 */
export async function reconcileHub(
  deps: MembershipDependencies,
  name: string,
  signal: AbortSignal,
): Promise<{ requeueAfterMs?: number }> {
  const hub = deps.hubs.get(name);
  if (!hub) {
    await deps.connections.close(name);
    return {};
  }
  const memberships = deps.memberships.byIndex(BY_HUB, name);
  const deleting = hub.metadata.deletionTimestamp !== undefined;
  if (deleting && memberships.length === 0) {
    await deps.connections.close(name);
    await hold(deps, HUBS, deps.hubs, hub, false, { signal });
    return {};
  }
  await hold(deps, HUBS, deps.hubs, hub, true, { signal });
  const seen = await look(deps, hub, signal);
  const selection = selectMembers(hub, deps.clusters.list(), memberships, (cluster) =>
    hasNoControlPlane(deps, cluster),
  );
  const status: HubStatus = {
    ...hub.status,
    ...(seen.identity && { clusterIdentity: hub.status?.clusterIdentity ?? seen.identity }),
    conditions: withConditions<'Hub'>(
      hub.status?.conditions,
      [
        seen.problem
          ? say('Ready', false, 'NotUsable', seen.problem, seen.codes)
          : say('Ready', true, 'HubReady', 'clusters can join'),
        deleting ? inUse(hub, memberships) : undefined,
        unapproved(selection),
      ],
      deps.now(),
    ),
    memberships: memberships.length,
    joined: memberships.filter(({ status }) => status?.state === 'Joined').length,
    leaving: memberships.filter(({ metadata }) => metadata.deletionTimestamp).length,
    observedGeneration: hub.metadata.generation,
  };
  await writeStatus(deps.garden, deps.hubs, hub, status, signal);
  const ending = deleting && hub.spec.orphan ? memberships : selection.leave;
  await each(ending, (membership) => end(deps, membership, signal));
  await each(selection.join, async (cluster) => {
    const made = { name: membershipName(cluster.metadata.name, name), finalizers: [FINALIZER] };
    try {
      deps.memberships.absorb(await deps.garden.create(newMembership(cluster, hub, made), { signal }));
    } catch (error) {
      // The cache was stale; or the namespace is being deleted with the cluster.
      if (
        !(error instanceof KubeApiError && (error.isAlreadyExists || error.isNamespaceTerminating || error.isNotFound))
      )
        throw error;
    }
  });
  return { requeueAfterMs: seen.problem ? RETRY_MS : LOOK_AGAIN_MS };
}

/** Whether a cluster has no control plane, by its profile for scale tests. An existing one counts nevertheless. */
function hasNoControlPlane({ profiles, provider }: MembershipDependencies, cluster: WorkerCluster): boolean {
  const profile = profiles.get(profileNameOf(cluster));
  return (
    profile !== undefined &&
    lacksControlPlane(profile, provider(profile)) &&
    !isTrue(cluster.status?.conditions, 'APIServerAvailable')
  );
}

interface Look {
  readonly identity?: string;
  readonly problem?: string;
  readonly codes?: string[];
}

async function look(deps: MembershipDependencies, hub: Hub, signal: AbortSignal): Promise<Look> {
  const {
    metadata: { name },
    spec,
    status,
  } = hub;
  const type = hubType(spec.type);
  if (!type)
    return { problem: `this operator knows no hubs of type ${spec.type}`, codes: ['ERR_CONFIGURATION_PROBLEM'] };
  try {
    const connection = await deps.connections.open(name, spec, status?.clusterIdentity, signal);
    const { identity } = connection;
    const problems = await problemsOf(type, hub, connection, deps.now(), signal);
    if (problems.length > 0)
      return { identity, problem: problems.join('; '), codes: ['ERR_RETRYABLE_CONFIGURATION_PROBLEM'] };
    deps.connections.watch(name, spec);
    return { identity };
  } catch (error) {
    if (signal.aborted) throw error;
    const codes = [error instanceof CoppiceError ? error.code : 'ERR_RETRYABLE_INFRA_DEPENDENCIES'];
    const problem = error instanceof CoppiceError ? errorText(error) : `the hub does not answer: ${errorText(error)}`;
    return { problem, codes };
  }
}

interface Answer {
  readonly generation: number | undefined;
  readonly at: Date;
  readonly problems: readonly string[];
}

const answers = new WeakMap<HubConnection, Answer>();

/** Why no cluster can join. Cached for a while, for an unchanged Hub and connection. */
async function problemsOf(
  type: HubType,
  { metadata: { generation }, spec }: Hub,
  connection: HubConnection,
  now: Date,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const known = answers.get(connection);
  if (known?.generation === generation && known && +now - +known.at < ANSWER_IS_GOOD_MS) return known.problems;
  const problems = await type.validate(readerOf(connection.client, signal), spec);
  answers.set(connection, { generation, at: now, problems });
  return problems;
}

async function end({ garden }: MembershipDependencies, { metadata }: Membership, signal: AbortSignal): Promise<void> {
  if (metadata.deletionTimestamp) return;
  const { name, namespace, uid } = metadata;
  await garden.delete(MEMBERSHIPS, name, namespace, { signal, preconditions: { ...(uid && { uid }) } });
}

function inUse({ spec }: Hub, memberships: readonly Membership[]) {
  const names = named(memberships);
  return spec.orphan
    ? say('Deleting', true, 'Orphaning', `it releases ${names}`)
    : say(
        'Deleting',
        true,
        'InUse',
        `deletion waits for its members to leave: ${names}. Delete these Memberships, or set orphan`,
      );
}

function unapproved({ unapproved: waiting }: Selection) {
  if (waiting.length === 0) return undefined;
  const message = `the selector asks ${waiting.length} clusters to leave, more than maxConcurrentLeaves: none begins. Correct the selector or the labels, or approve by annotation: ${named(waiting)}`;
  return say('LeavesApproved', false, 'ApprovalNeeded', message);
}

const named = (memberships: readonly Membership[]): string => {
  const names = memberships.slice(0, NAMED).map(keyOf);
  return names.join(', ') + (memberships.length > NAMED ? ` and ${memberships.length - NAMED} more` : '');
};

async function each<T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += AT_ONCE) await Promise.all(items.slice(at, at + AT_ONCE).map(run));
}

/** New Membership of a cluster in a hub, with the finalizer from the start. */
const newMembership = (
  { metadata }: WorkerCluster,
  hub: Hub,
  { name, finalizers }: { name: string; finalizers: string[] },
): Membership => ({
  apiVersion: ALPHA_API_VERSION,
  kind: 'Membership',
  metadata: {
    name,
    namespace: metadata.namespace ?? '',
    finalizers,
    ownerReferences: [
      {
        apiVersion: API_VERSION,
        kind: 'WorkerCluster',
        name: metadata.name,
        uid: metadata.uid ?? '',
        controller: false,
        blockOwnerDeletion: false,
      },
    ],
  },
  spec: { cluster: metadata.name, hub: hub.metadata.name },
});
