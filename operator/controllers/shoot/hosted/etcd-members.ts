import { configurationProblem } from '../../../api/errors.ts';
import { COMPONENTS, etcdMemberName } from '../../../api/names.ts';
import { type EtcdClient, EtcdError } from '../../../etcd/etcd-client.ts';
import { sleep } from '../../../kube/clock.ts';
import { KubeApiError } from '../../../kube/errors.ts';
import { waitFor } from '../../../kube/informer.ts';
import { conditionIsTrue, PODS, PVCS, type Secret } from '../../../kube/resources.ts';
import { etcdClaimName, etcdManifests } from '../../../shoot/etcd.ts';
import {
  type EtcdAction,
  type EtcdObservation,
  type EtcdVolumes,
  lostMajority,
  planEtcd,
} from '../../../shoot/etcd-membership.ts';
import { kubeAPIServer } from '../../../shoot/kube-apiserver.ts';
import { ETCD_GATEWAY_PORT, etcdClientURL, etcdPeerURL } from '../../../shoot/values.ts';
import { openEtcd } from '../etcd-access.ts';
import type { Operation } from '../operation.ts';

/** Polling interval while a member starts or copies data; etcd has no watch for members. */
const POLL_MS = 300;

/** Delay after a refusal of etcd. A healthy etcd refuses new members until all existing ones were connected for 5 s. */
const REFUSED_MS = 1_000;
/** Refusals are reported after this time. */
const REFUSED_LONG_MS = 30_000;

/** Changes etcd's members to the desired ones, one safe step at a time; see planEtcd. */
export async function reconcileEtcdMembers(op: Operation, signal: AbortSignal, open = openEtcd): Promise<void> {
  const { seed, state } = op;
  const { values } = op;
  const desired = values.replicas;
  let pods = podsIn(op);
  if (state.etcdSettled === desired && etcdPodsAreKnown(op)) return;
  const place = { ...values, dialPod: seed.dialPod, podName: etcdMemberName, gatewayPort: ETCD_GATEWAY_PORT };
  const client = await open(place, op.pki, op.deps.now());
  const refusals = new Refusals(() => op.deps.now());
  try {
    for (;;) {
      signal.throwIfAborted();
      pods = podsIn(op);
      const plan = planEtcd(await observe(op, client, signal));
      if (plan.blocked) throw new Error(`etcd cannot be brought to ${desired} members: ${plan.waitFor}`);
      // API servers get new endpoints only after all members joined: one roll instead of one per member.
      const growing = plan.endpoints.length < plan.target;
      if (!growing && plan.endpoints.join() !== op.values.etcd.endpoints.join()) {
        op.values = { ...op.values, etcd: { ...op.values.etcd, endpoints: plan.endpoints } };
        for (const object of kubeAPIServer(op.values, op.pki)) await seed.applier.apply(object, signal);
      }
      const { action } = plan;
      if (action) await refusals.outlast(() => act(op, client, action, signal), signal);
      else if (plan.waitFor) await sleep(POLL_MS, signal);
      else break;
    }
    state.etcdSettled = desired;
    state.etcdPods = pods;
  } finally {
    await client.close();
  }
}

/** Throws when so many members lost their volumes that only a backup helps. Call this before waiting for etcd. */
export async function refuseLostMajority(op: Operation, signal: AbortSignal): Promise<void> {
  const { volumes: noted = {}, replicas } = op.values.etcd;
  const members = Object.keys(noted)
    .map(Number)
    .filter((ordinal) => ordinal < replicas);
  const ready = () => members.filter((ordinal) => isReady(op, ordinal));
  if (ready().length === members.length) return;
  const lost = lostMajority({ volumes: await volumesOf(op, signal), noted, replicas }, ready());
  if (lost)
    throw configurationProblem(lost, 'Restore a backup into the volumes, or delete the cluster and create it again.');
}

const podOf = ({ seed, values }: Operation, ordinal: number) =>
  seed.pods.get(`${values.namespace}/${etcdMemberName(ordinal)}`);

function isReady(op: Operation, ordinal: number): boolean {
  const pod = podOf(op, ordinal);
  return pod !== undefined && conditionIsTrue(pod, 'Ready');
}

/** Whether the members' pods are those last seen in the desired state. */
export const etcdPodsAreKnown = (op: Operation): boolean => op.state.etcdPods === podsIn(op);

/** Key of the members' pods; changes when one is replaced. */
const podsIn = (op: Operation): string =>
  op.values.addresses.etcd.map((_, ordinal) => podOf(op, ordinal)?.metadata.uid ?? '').join();

/** Current UIDs of the members' claims, by ordinal. */
async function volumesOf({ seed, values }: Operation, signal: AbortSignal): Promise<EtcdVolumes> {
  const { items } = await seed.client.list(PVCS, { namespace: values.namespace, signal });
  return Object.fromEntries(
    values.addresses.etcd.flatMap((_, ordinal) => {
      const uid = items.find(({ metadata }) => metadata.name === etcdClaimName(ordinal))?.metadata.uid;
      return uid === undefined ? [] : [[ordinal, uid]];
    }),
  );
}

async function observe(op: Operation, client: EtcdClient, signal: AbortSignal): Promise<EtcdObservation> {
  const { seed, values } = op;
  const ns = values.namespace;
  // Sequential on purpose: see EtcdObservation.
  const volumes = await volumesOf(op, signal);
  const members = await client.observe();
  const ordinals = values.addresses.etcd.map((_, ordinal) => ordinal);
  return {
    desired: values.replicas,
    replicas: seed.statefulSets.get(`${ns}/${COMPONENTS.etcd}`)?.spec.replicas ?? 0,
    initialised: values.etcd.initialised,
    peerURLs: ordinals.map((ordinal) => etcdPeerURL(values, ordinal)),
    ...(members && { members }),
    volumes,
    noted: values.etcd.volumes ?? {},
    inUse: inUse(op),
  };
}

/** Ordinals of members in the API server pods' configuration. */
function inUse(op: Operation): number[] {
  const { seed, values } = op;
  const told = seed
    .podsOf(`${values.shoot.namespace}/${values.shoot.name}`)
    .filter((pod) => pod.metadata.labels?.app === COMPONENTS.apiServer && pod.status?.phase !== 'Failed')
    .flatMap((pod) =>
      pod.spec.containers.flatMap((container) => ((container as { args?: string[] }).args ?? []) as string[]),
    )
    .filter((argument) => argument.startsWith('--etcd-servers='))
    .join(',');
  return values.addresses.etcd
    .map((_, ordinal) => ordinal)
    .filter((ordinal) => told.includes(etcdClientURL(values, ordinal)));
}

/** Waits for the pods too: a terminating pod is still a member until it is gone. */
async function whenScaled({ seed, values }: Operation, replicas: number, signal: AbortSignal): Promise<void> {
  const { namespace, addresses } = values;
  await waitFor(
    [seed.statefulSets],
    () => seed.statefulSets.get(`${namespace}/${COMPONENTS.etcd}`)?.spec.replicas === replicas,
    { timeoutMs: 30_000, signal, what: `StatefulSet ${COMPONENTS.etcd} to have ${replicas} replicas` },
  );
  const isGone = (ordinal: number) => !seed.pods.get(`${namespace}/${COMPONENTS.etcd}-${ordinal}`);
  await waitFor([seed.pods], () => addresses.etcd.every((_, ordinal) => ordinal < replicas || isGone(ordinal)), {
    timeoutMs: 120_000,
    signal,
    what: 'surplus etcd pods to be gone',
  });
}

async function act(op: Operation, client: EtcdClient, action: EtcdAction, signal: AbortSignal): Promise<void> {
  const { seed } = op;
  const reapply = async () => {
    for (const object of etcdManifests(op.values, op.pki)) {
      const applied = await seed.applier.apply(object, signal);
      // A stale cache must not return the Secret without its new note.
      if (object.kind === 'Secret') seed.secrets.absorb(applied.object as Secret);
    }
  };
  const note = (volumes: EtcdVolumes, initialised = op.values.etcd.initialised) => {
    op.values = { ...op.values, etcd: { ...op.values.etcd, initialised, volumes } };
    return reapply();
  };
  switch (action.type) {
    case 'mark-initialised':
      return note(action.volumes, true);
    case 'note-volumes':
      return note(action.volumes);
    case 'scale':
      op.values = { ...op.values, etcd: { ...op.values.etcd, replicas: action.replicas } };
      await reapply();
      return whenScaled(op, action.replicas, signal);
    case 'add-learner':
      await note(action.volumes);
      await client.addLearner(action.peerURL);
      op.deps.recordEvent(op.shoot, 'Normal', 'EtcdMemberJoins', `etcd member ${action.ordinal} joins`);
      // A member that lost its volume already runs with a configuration without peers, and would read the new one late.
      return removePod(op, action.ordinal, signal);
    case 'promote':
      await client.promote(action.id);
      return note(action.volumes);
    case 'transfer-leadership':
      return client.transferLeadership(action.from, action.to);
    case 'remove-member':
      if (action.lost)
        op.deps.recordEvent(
          op.shoot,
          'Warning',
          'EtcdVolumeLost',
          `the volume of etcd member ${action.ordinal} is lost: the member is removed from etcd, and joins as a new one`,
        );
      else
        op.deps.recordEvent(
          op.shoot,
          'Normal',
          'EtcdMemberRemoved',
          `the operator removes etcd member ${action.ordinal}`,
        );
      return client.remove(action.id);
    case 'delete-volume':
      await seed.client.delete(PVCS, etcdClaimName(action.ordinal), op.values.namespace, { signal });
      return;
  }
}

/** Tolerates temporary refusals of etcd: the next observation may find the step done or unnecessary. */
class Refusals {
  readonly #now: () => Date;
  #since: number | undefined;

  constructor(now: () => Date) {
    this.#now = now;
  }

  /** Rejects with a refusal only after half a minute of refusals. */
  async outlast(step: () => Promise<void>, signal: AbortSignal): Promise<void> {
    try {
      await step();
      this.#since = undefined;
    } catch (error) {
      const now = +this.#now();
      this.#since ??= now;
      if (!(error instanceof EtcdError) || now - this.#since > REFUSED_LONG_MS) throw error;
      await sleep(REFUSED_MS, signal);
    }
  }
}

/** Deletes a member's pod; its StatefulSet recreates it. */
async function removePod(op: Operation, ordinal: number, signal: AbortSignal): Promise<void> {
  const { name, namespace, uid } = podOf(op, ordinal)?.metadata ?? {};
  if (!name || !uid) return;
  await op.seed.client.delete(PODS, name, namespace, { signal, preconditions: { uid } }).catch((error: unknown) => {
    if (!(error instanceof KubeApiError && error.isConflict)) throw error;
  });
}
