import type { ControlPlaneMachines, Pool } from '../../../../providers/contract.ts';
import { controlPlaneMachineName } from '../../../api/names.ts';
import { conditionIsTrue, type Service } from '../../../kube/resources.ts';
import { controlPlaneMachineService } from '../../../shoot/control-plane-services.ts';
import { services } from '../../../shoot/services.ts';
import { inPodOfSeed } from '../connect.ts';
import { expose } from '../expose.ts';
import type { Operation } from '../operation.ts';
import type { ControlPlaneInfrastructure } from './infrastructure.ts';
import {
  applyControlPlaneMachines,
  noteFirstVolume,
  reconcileControlPlaneSize,
  untilLost,
} from './self-hosted-size.ts';

const MINUTE = 60_000;
/** The image of such machines may still be made: kubeadm is built when everything else is there. */
const KUBEADM_BUILT_MS = 20 * MINUTE;

/** Machines that are pods of the seed, numbered, each behind a Service, with its data on a volume that outlives it. */
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
    },
    apiServer: inPodOfSeed(KUBEADM_BUILT_MS),
    problem: ({ exposure = 'ClusterIP' }) =>
      exposure === 'ClusterIP'
        ? undefined
        : 'a control plane on machines needs a seed whose Services are reached as they are (exposure ClusterIP): its certificates do not follow a new address yet',
    makeEndpoint: (op, signal) => reserveAddresses(op, pool, signal),
    begin: (op) => applyControlPlaneMachines(op, own),
    untilHopeless: (op, signal) => untilLost(op, own, signal),
    noteBegun: (op, signal) => noteFirstVolume(op, own, signal),
    systemComponents: () => [],
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

/** Addresses outlive machines: certificates and etcd's members carry them. */
async function reserveAddresses(op: Operation, pool: Pool, signal: AbortSignal): Promise<void> {
  const { seed, values } = op;
  let members = values.replicas;
  // An address once given stays: a machine on its way out still has it.
  while (seed.services.get(`${values.namespace}/${controlPlaneMachineName(pool.name, members)}`)) members++;
  const ofMachines = Array.from({ length: members }, (_, ordinal) =>
    controlPlaneMachineService(values, pool.name, ordinal),
  );
  const wanted = [...services(values, 0), ...ofMachines];
  const made = await Promise.all(wanted.map((object) => seed.applier.apply(object, signal)));
  const [apiServer = '', ...etcd] = made.map(({ object }) => (object as Service).spec.clusterIP ?? '');
  const endpoint = await expose(op, made[0]!.object as Service, signal);
  op.values = { ...values, addresses: { apiServer, etcd }, ...(endpoint && { endpoint }) };
}
