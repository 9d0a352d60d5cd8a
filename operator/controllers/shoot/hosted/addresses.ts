import { etcdMemberName } from '../../../api/names.ts';
import type { Service } from '../../../kube/resources.ts';
import { services } from '../../../shoot/services.ts';
import { expose } from '../expose.ts';
import type { Operation } from '../operation.ts';

/** The Services of a hosted control plane, whose addresses the operation knows from then on. */
export async function reserveAddresses(op: Operation, signal: AbortSignal): Promise<void> {
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
