import type { ControlPlaneGroup, ControlPlaneGroupSeen, Pool } from '../../../../providers/contract.ts';
import { CoppiceError, errorText } from '../../../api/errors.ts';
import { hasServed } from '../../../api/shoot.ts';
import { sleep } from '../../../kube/clock.ts';
import { keyOf } from '../../../kube/resources.ts';
import { kubeadmKeys } from '../../../shoot/kubeadm.ts';
import { outsideOfSeed } from '../connect.ts';
import type { Operation } from '../operation.ts';
import { LossWatch, machineVersionProblem, ofOtherVersion } from './control-plane-group-seen.ts';
import type { ControlPlaneInfrastructure } from './infrastructure.ts';
import { noteIn } from './self-hosted.ts';
import {
  type CloudMachines,
  initDocuments,
  membersNoted,
  noteMembers,
  ofPool,
  reconcileControlPlaneGroup,
} from './self-hosted-group.ts';
import { LOOK_MS, looksLost } from './self-hosted-group-size.ts';

const PARTS = ['endpoint', 'machines'] as const;

/**
 * Reverts drift of an initialised control plane if wanted. Must not run while machines are added or ended. A refusal of
 * the cloud is reported and blocks nothing.
 * @param isLast give up what cannot be reverted now
 */
async function mendControlPlane(op: Operation, { pool, group }: CloudMachines, isLast: boolean): Promise<void> {
  if (!op.mend || !noteIn(op)) return;
  for (const part of PARTS) {
    if (op.unmended.has(part)) continue;
    try {
      const changes = await group.mend(op.context(), pool.name, part);
      if (changes) op.unmended.set(part, { changes });
      else if (isLast) op.unmended.set(part, { changes: [], because: 'its machines come or go' });
    } catch (error) {
      op.signal.throwIfAborted();
      if (isLast) op.unmended.set(part, { changes: [], because: errorText(error) });
      op.deps.log.warn(
        { err: error, shoot: keyOf(op.shoot) },
        'what others changed of the control plane is not mended yet',
      );
    }
  }
}

const MINUTE = 60_000;

/** Control plane machines in a tenant's account: a group behind a load balancer, each with its data on its own disk. */
export function inCloud(pool: Pool, group: ControlPlaneGroup): ControlPlaneInfrastructure {
  const own = { pool, group };
  const ownNodes = ({ state: { connection } }: Operation) => connection && ofPool(connection.nodes.list(), pool);
  return {
    pool,
    tasks: {
      // A cloud's network takes minutes, and clusters of one account take turns.
      endpoint: {
        id: 'endpoint',
        title: 'Making the endpoint of the API server',
        expectedMs: 5 * MINUTE,
        timeoutMs: 45 * MINUTE,
      },
      machines: {
        title: 'Making the first machine of the control plane',
        expectedMs: MINUTE,
        timeoutMs: 30 * MINUTE,
      },
      // From requesting a machine to an API server behind the load balancer.
      serves: { expectedMs: 4 * MINUTE, timeoutMs: 20 * MINUTE },
      // An upgrade or a step of key rotation replaces up to five machines, each of which boots and installs itself.
      size: { expectedMs: MINUTE, timeoutMs: 120 * MINUTE },
      readyMs: 10 * MINUTE,
      rotationMs: 6 * 60 * MINUTE,
    },
    apiServer: outsideOfSeed,
    // No event reports an API server that disappeared with its machine in a cloud.
    lookAgainMs: 5 * MINUTE,
    problem: () => undefined,
    versionProblem: (op) => machineVersionProblem(ownNodes(op) ?? [], op.values.version),
    isOutdated: (op) => {
      const nodes = ownNodes(op);
      return nodes ? ofOtherVersion(nodes, op.values.version).length > 0 : hasServed(op.shoot);
    },
    makeEndpoint: async (op) => {
      const endpoint = await group.endpoint(op.context(), pool);
      op.values = { ...op.values, addresses: { apiServer: endpoint.host, etcd: [] }, endpoint };
    },
    begin: async (op) => {
      if (noteIn(op)) return;
      const first = { begin: kubeadmKeys(op.pki) };
      await group.reconcile(op.context(), { ...pool, count: 1 }, { init: initDocuments(op), first });
    },
    untilHopeless: (op, signal) => untilHopeless(op, own, signal),
    noteBegun: async (op, signal) => {
      const { machines } = await group.observe(op.context(), pool.name);
      const alive = machines.filter(({ phase }) => phase !== 'Terminating').map(({ nodeName }) => nodeName);
      if (alive.length !== 1) throw new Error(`the control plane begins on one machine, and there are ${alive.length}`);
      await noteMembers(op, pool, alive, signal);
    },
    // Control plane nodes need the network components of cloud nodes too.
    systemComponents: ({ provider }) => provider.systemComponents?.() ?? [],
    reconcileSize: (op, signal) => reconcileControlPlaneGroup(op, own, signal),
    mend: (op, isLast) => mendControlPlane(op, own, isLast),
    names: (nodes) => ofPool(nodes, pool).map(({ metadata }) => metadata.name),
    isUp: () => () => true,
    informers: () => [],
    list: (op) => group.list(op.context(), pool.name),
    delete: async () => {},
  };
}

/** Rejects once the cluster's state is known to be lost, or the cloud gives no machine; else on abort. */
async function untilHopeless(op: Operation, { pool, group }: CloudMachines, signal: AbortSignal): Promise<never> {
  const watch = new LossWatch();
  for (;;) {
    // Usually the API server answers at once, so no request is needed.
    await sleep(LOOK_MS, signal);
    signal.throwIfAborted();
    const seen = await group.observe(op.context(), pool.name).catch((error: unknown) => {
      // A cloud's failure does not prove that the API server will not answer.
      op.deps.log.warn(
        { err: error, shoot: op.shoot.metadata.name },
        'the machines of the control plane cannot be seen',
      );
    });
    if (seen) throwIfHopeless(op, seen, watch);
  }
}

function throwIfHopeless(op: Operation, seen: ControlPlaneGroupSeen, watch: LossWatch): void {
  looksLost(membersNoted(op), seen, watch, op.deps.now());
  if (noteIn(op) || seen.failure === undefined) return;
  const message = `the control plane does not get its machine: ${seen.failure}`;
  throw new CoppiceError('ERR_RETRYABLE_INFRA_DEPENDENCIES', message);
}
