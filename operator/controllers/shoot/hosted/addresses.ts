import { etcdMemberName } from '../../../api/names.ts';
import type { Task } from '../../../flow/graph.ts';
import type { Service } from '../../../kube/resources.ts';
import { services } from '../../../shoot/services.ts';
import { beginRecords } from '../dns/dns-records.ts';
import { expose } from '../expose.ts';
import type { Operation } from '../operation.ts';

const MINUTE = 60_000;

/**
 * The Services of a hosted control plane, and the DNS records of their addresses: awake and asleep.
 * @param title what people are told of the Services
 */
export const addressTasks = (op: Operation, title: string): Task[] => [
  {
    id: 'services',
    title,
    after: ['namespace'],
    expectedMs: 60,
    timeoutMs: 12 * MINUTE,
    run: (signal) => reserveAddresses(op, signal),
  },
  {
    id: 'dns-records',
    title: 'Starting to make DNS records',
    after: ['services'],
    // Names that are wanted no longer are forgotten once.
    skip: op.names.length === 0 && !op.state.dns,
    expectedMs: 1,
    // Only begins it: a cluster serves without a name, and no cloud's DNS holds it up.
    run: () => beginRecords(op),
  },
];

/** The Services of a hosted control plane, whose addresses the operation knows from then on. */
async function reserveAddresses(op: Operation, signal: AbortSignal): Promise<void> {
  const { seed, values } = op;
  // An address once given stays, also when its member has left: taking it away would mean new certificates and a restart.
  const members = Math.max(values.replicas, etcdServices(op));
  const made = await Promise.all(services(values, members).map((object) => seed.applier.apply(object, signal)));
  const [apiServer, ...etcdMembers] = made.map(({ object }) => (object as Service).spec.clusterIP ?? '');
  const endpoint = await expose(op, made[0]!.object as Service, signal);
  op.values = {
    ...op.values,
    addresses: { apiServer: apiServer ?? '', etcd: etcdMembers },
    ...(endpoint && { endpoint }),
  };
}

/** How many member Services there are. */
function etcdServices(op: Operation): number {
  let count = 0;
  while (op.seed.services.get(`${op.values.namespace}/${etcdMemberName(count)}`)) count++;
  return count;
}
