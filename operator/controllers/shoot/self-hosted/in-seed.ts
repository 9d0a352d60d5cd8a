import type { ControlPlaneMachines, Pool } from '../../../../providers/contract.ts';
import { LABELS, ROLES } from '../../../api/group.ts';
import { controlPlaneMachineName } from '../../../api/names.ts';
import { conditionIsTrue, keyOf, type Pod, type Service } from '../../../kube/resources.ts';
import { controlPlaneMachineService } from '../../../shoot/control-plane-services.ts';
import { FEWEST_TO_REPLACE } from '../../../shoot/control-plane-size.ts';
import { kubeadmConfig } from '../../../shoot/kubeadm.ts';
import { serviceManifests } from '../../../shoot/services.ts';
import { inPodOfSeed } from '../connect.ts';
import { expose } from '../expose.ts';
import type { Operation } from '../operation.ts';
import { isChangingKeys, wantsAnotherKey } from './encryption.ts';
import type { ControlPlaneInfrastructure } from './infrastructure.ts';
import {
  applyControlPlaneMachines,
  noteFirstVolume,
  reconcileControlPlaneSize,
  type SeedMachines,
  untilLost,
} from './self-hosted-size.ts';

const MINUTE = 60_000;
/** Time to build the image: kubeadm is built last. */
const KUBEADM_BUILT_MS = 20 * MINUTE;

/** Control plane machines as numbered pods of the seed, each with a Service, and a volume that outlives it. */
export function inSeed(pool: Pool, machines: ControlPlaneMachines): ControlPlaneInfrastructure {
  const own = { pool, machines };
  return {
    pool,
    tasks: {
      endpoint: { id: 'services', title: 'Reserving addresses', expectedMs: 60, timeoutMs: 12 * MINUTE },
      machines: { title: 'Making the machines of the control plane', expectedMs: 50 },
      serves: { expectedMs: 30_000, timeoutMs: KUBEADM_BUILT_MS },
      size: { expectedMs: 1000, timeoutMs: 30 * MINUTE },
      readyMs: 5 * MINUTE,
      rotationMs: 90 * MINUTE,
    },
    apiServer: inPodOfSeed(KUBEADM_BUILT_MS),
    problem: ({ exposure = 'ClusterIP' }) =>
      exposure === 'ClusterIP'
        ? undefined
        : 'a control plane on machines needs a seed with exposure ClusterIP: its certificates cannot follow an address that changes',
    versionProblem: (op, running) =>
      op.context().machineImage === undefined
        ? undefined
        : `machines of the image that the seed names stay at its version: ${running}, not ${op.values.version}`,
    isOutdated: (op) => outdated(op, own).length > 0,
    makeEndpoint: (op, signal) => reserveAddresses(op, own, signal),
    begin: (op) => applyControlPlaneMachines(op, own),
    untilHopeless: (op, signal) => untilLost(op, own, signal),
    noteBegun: (op, signal) => noteFirstVolume(op, own, signal),
    systemComponents: (op) => [kubeadmConfig(op.values, op.pki)],
    reconcileSize: (op, signal) => reconcileControlPlaneSize(op, own, signal),
    names: (_nodes, desired) =>
      Array.from({ length: desired }, (_, ordinal) => controlPlaneMachineName(pool.name, ordinal)),
    isUp:
      ({ seed, values }) =>
      (name) => {
        const pod = seed.pods.get(`${values.namespace}/${name}`);
        return pod !== undefined && pod.metadata.deletionTimestamp === undefined && conditionIsTrue(pod, 'Ready');
      },
    informers: ({ seed }) => [seed.pods],
    list: async (op) => (await machines.observe(op.context(), pool.name)).machines,
    delete: (op) => machines.delete(op.context(), pool.name),
  };
}

/** Cached control plane pods. */
const podsOfControlPlane = ({ seed, shoot }: Operation): Pod[] =>
  seed.podsOf(keyOf(shoot)).filter(({ metadata }) => metadata.labels?.[LABELS.role] === ROLES.controlPlaneMachine);

const outdated = (op: Operation, { machines }: SeedMachines): string[] =>
  podsOfControlPlane(op)
    .filter((pod) => machines.isOutdated(op.context(), pod))
    .map(({ metadata }) => metadata.name);

/** Reserves addresses, which outlive machines: certificates and etcd members contain them. */
async function reserveAddresses(op: Operation, own: SeedMachines, signal: AbortSignal): Promise<void> {
  const { seed, values } = op;
  const isReplacing = outdated(op, own).length > 0 || isChangingKeys(op) || wantsAnotherKey(op);
  let members = isReplacing ? Math.max(values.replicas, FEWEST_TO_REPLACE) : values.replicas;
  // Keep the address of a machine that is being removed.
  while (seed.services.get(`${values.namespace}/${controlPlaneMachineName(own.pool.name, members)}`)) members++;
  const ofMachines = Array.from({ length: members }, (_, ordinal) =>
    controlPlaneMachineService(values, own.pool.name, ordinal),
  );
  // With several members, route only to ready ones.
  const serving = isReplacing ? members : Math.max(values.replicas, podsOfControlPlane(op).length);
  const wanted = [...serviceManifests({ ...values, replicas: serving }, 0), ...ofMachines];
  const made = await Promise.all(wanted.map((object) => seed.applier.apply(object, signal)));
  const [apiServer = '', ...etcd] = made.map(({ object }) => (object as Service).spec.clusterIP ?? '');
  const endpoint = await expose(op, made[0]!.object as Service, signal);
  op.values = { ...values, addresses: { apiServer, etcd }, ...(endpoint && { endpoint }) };
}
