import { COMPONENTS, etcdMemberName } from '../../../api/names.ts';
import type { EtcdClient } from '../../../etcd/etcd-client.ts';
import { sleep } from '../../../kube/clock.ts';
import { waitFor } from '../../../kube/informer.ts';
import { PVCS } from '../../../kube/resources.ts';
import { etcd, etcdClaimName } from '../../../shoot/etcd.ts';
import { type EtcdAction, type EtcdObservation, planEtcd } from '../../../shoot/etcd-membership.ts';
import { kubeAPIServer } from '../../../shoot/kube-apiserver.ts';
import { etcdClientURL, etcdPeerURL } from '../../../shoot/values.ts';
import { openEtcd } from '../etcd-access.ts';
import type { Operation } from '../operation.ts';

/** How often members are asked again while one of them starts or copies data; etcd has no watch for its members. */
const POLL_MS = 300;

/** Takes etcd from the members it has to those it should have, one safe step at a time; see planEtcd. */
export async function reconcileEtcdMembers(op: Operation, signal: AbortSignal): Promise<void> {
  const { seed, state } = op;
  const { values } = op;
  const desired = values.replicas;
  if (state.etcdSettled === desired) return;
  const place = { ...values, dialPod: seed.dialPod, podName: etcdMemberName };
  const client = await openEtcd(place, op.pki, op.world.now());
  try {
    for (;;) {
      signal.throwIfAborted();
      const plan = planEtcd(await observe(op, client, signal));
      if (plan.blocked) throw new Error(`etcd cannot be brought to ${desired} members: ${plan.waitFor}`);
      // While members join, API servers keep to those they know: one roll at the end instead of one for each member.
      const growing = plan.endpoints.length < plan.target;
      if (!growing && plan.endpoints.join() !== op.values.etcd.endpoints.join()) {
        op.values = { ...op.values, etcd: { ...op.values.etcd, endpoints: plan.endpoints } };
        for (const object of kubeAPIServer(op.values, op.pki)) await seed.applier.apply(object, signal);
      }
      if (plan.action) await act(op, client, plan.action, signal);
      else if (plan.waitFor) await sleep(POLL_MS, signal);
      else break;
    }
    state.etcdSettled = desired;
  } finally {
    await client.close();
  }
}

async function observe(op: Operation, client: EtcdClient, signal: AbortSignal): Promise<EtcdObservation> {
  const { seed, values } = op;
  const ns = values.namespace;
  const [claims, members] = await Promise.all([seed.client.list(PVCS, { namespace: ns, signal }), client.observe()]);
  const names = new Set(claims.items.map((claim) => claim.metadata.name));
  const ordinals = values.addresses.etcd.map((_, ordinal) => ordinal);
  return {
    desired: values.replicas,
    replicas: seed.statefulSets.get(`${ns}/${COMPONENTS.etcd}`)?.spec.replicas ?? 0,
    initialised: values.etcd.initialised,
    peerURLs: ordinals.map((ordinal) => etcdPeerURL(values, ordinal)),
    ...(members && { members }),
    volumes: ordinals.filter((ordinal) => names.has(etcdClaimName(ordinal))),
    inUse: inUse(op),
  };
}

/** Ordinals of the members that an API server pod has been told of. */
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

async function act(op: Operation, client: EtcdClient, action: EtcdAction, signal: AbortSignal): Promise<void> {
  const { seed, values } = op;
  const ns = values.namespace;
  const reapply = async () => {
    for (const object of etcd(op.values, op.pki)) await seed.applier.apply(object, signal);
  };
  switch (action.type) {
    case 'mark-initialised':
      op.values = { ...op.values, etcd: { ...op.values.etcd, initialised: true } };
      return reapply();
    case 'scale': {
      op.values = { ...op.values, etcd: { ...op.values.etcd, replicas: action.replicas } };
      await reapply();
      await waitFor(
        [seed.statefulSets],
        () => seed.statefulSets.get(`${ns}/${COMPONENTS.etcd}`)?.spec.replicas === action.replicas,
        {
          timeoutMs: 30_000,
          signal,
          what: `StatefulSet ${COMPONENTS.etcd} to have ${action.replicas} replicas`,
        },
      );
      // A pod on its way out still is a member of somebody's quorum until it is gone.
      await waitFor(
        [seed.pods],
        () =>
          values.addresses.etcd.every(
            (_, ordinal) => ordinal < action.replicas || !seed.pods.get(`${ns}/${COMPONENTS.etcd}-${ordinal}`),
          ),
        { timeoutMs: 120_000, signal, what: 'surplus etcd pods to be gone' },
      );
      return;
    }
    case 'add-learner':
      op.world.record(op.shoot, 'Normal', 'EtcdMemberJoins', `etcd member ${action.ordinal} joins`);
      return client.addLearner(action.peerURL);
    case 'promote':
      return client.promote(action.id);
    case 'transfer-leadership':
      return client.transferLeadership(action.from, action.to);
    case 'remove-member':
      op.world.record(op.shoot, 'Normal', 'EtcdMemberLeaves', `etcd member ${action.ordinal} leaves`);
      return client.remove(action.id);
    case 'delete-volume':
      await seed.client.delete(PVCS, etcdClaimName(action.ordinal), ns, { signal });
      return;
  }
}
