import { etcdMemberName } from '../../../api/names.ts';
import type { Task } from '../../../flow/graph.ts';
import type { Service } from '../../../kube/resources.ts';
import { serviceManifests } from '../../../shoot/services.ts';
import { beginRecords } from '../dns/dns-records.ts';
import { expose } from '../expose.ts';
import type { Operation } from '../operation.ts';

const MINUTE = 60_000;

/**
 * Tasks for the Services of a hosted control plane and their DNS records, awake and asleep.
 * @param title of the Services' task
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
    // Runs once more after names were removed, to forget them.
    skip: op.names.length === 0 && !op.state.dns,
    expectedMs: 1,
    // Not awaited: a cluster serves without a name, and no DNS outage may block it.
    run: () => beginRecords(op),
  },
];

/** Creates the Services of a hosted control plane, and stores their addresses in the operation. */
async function reserveAddresses(op: Operation, signal: AbortSignal): Promise<void> {
  const { seed, values } = op;
  // A member's address stays after it left: removing it would require new certificates and a restart.
  const members = Math.max(values.replicas, etcdServices(op));
  const made = await Promise.all(serviceManifests(values, members).map((object) => seed.applier.apply(object, signal)));
  const [apiServer, ...etcdMembers] = made.map(({ object }) => (object as Service).spec.clusterIP ?? '');
  const endpoint = await expose(op, made[0]!.object as Service, signal);
  op.values = {
    ...op.values,
    addresses: { apiServer: apiServer ?? '', etcd: etcdMembers },
    ...(endpoint && { endpoint }),
  };
}

/** Number of member Services. */
function etcdServices(op: Operation): number {
  let count = 0;
  while (op.seed.services.get(`${op.values.namespace}/${etcdMemberName(count)}`)) count++;
  return count;
}
