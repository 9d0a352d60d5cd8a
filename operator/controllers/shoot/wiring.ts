import { LABELS, ROLES } from '../../api/group.ts';
import { shootProfileName } from '../../api/shoot.ts';
import { TaskDurations } from '../../flow/graph.ts';
import { FairQueue } from '../../kube/fair-queue.ts';
import { keyOf } from '../../kube/resources.ts';
import { type Core, OPERATIONS_AT_ONCE, type Part, workersOfNamespace } from '../core.ts';
import { failuresOf } from '../failure.ts';
import { shootIsShort } from '../shortages.ts';
import { concernsUsers, onlyFinalizersChanged, onlyStatusChanged } from '../status-writer.ts';
import { ShootController } from './controller.ts';
import { isDeletedByHand, shootHolds } from './deletion/deleted-by-hand.ts';
import type { ShootBackups, ShootDependencies } from './dependencies.ts';
import { DNS_LOOKS } from './dns/dns-records.ts';
import { DRIFT_LOOKS } from './drift/drift.ts';

/** What shoots need of others. */
interface ShootsOptions extends Pick<ShootDependencies, 'holds'> {
  readonly backups: ShootBackups;
  readonly accounts: Pick<ShootDependencies, 'namesAccount' | 'account' | 'dns'>;
}

/**
 * More than the longest task is given, or that would be broken off each time: another key on machines of a cloud (in-cloud.ts). Most tasks
 * give up by themselves much sooner.
 */
export const OPERATION_LIMIT_MS = 7 * 3600_000;
/** Pods of a cluster come and go all the time: its status follows at this pace. */
const INSIDE_CHANGES_MS = 500;

/** A node that has just become unwell is looked at once, with those that follow it. */
const REPAIR_LOOK_MS = 2_000;
/** Clusters whose machines are repaired. */
const REPAIRS_AT_ONCE = 8;
/** Clusters whose kubelets are answered. */
const CERTIFICATES_AT_ONCE = 8;

/** Makes the controllers of Shoots and of certificates that their kubelets ask for. */
export function wireShoots(core: Core, { accounts, backups, holds }: ShootsOptions): Part {
  const { clusters, kubeconfigs, profiles, registry, seeds, shoots } = core;
  const queue = core.queues.shoots;
  const certificates = core.queue('certificates', { perNamespace: workersOfNamespace(CERTIFICATES_AT_ONCE) });
  const repairs = core.queue('repair', { perNamespace: workersOfNamespace(REPAIRS_AT_ONCE) });
  const controller = new ShootController({
    ...core,
    ...accounts,
    holds: shootHolds(shoots, clusters, holds),
    isDeletedByHand: (shoot) => isDeletedByHand(shoot, clusters.get(keyOf(shoot))),
    backups,
    workers: OPERATIONS_AT_ONCE,
    durations: new TaskDurations(),
    dnsTurns: new FairQueue(DNS_LOOKS),
    driftTurns: new FairQueue(DRIFT_LOOKS),
    again: (shoot) => queue.add(keyOf(shoot)),
    depleted: (shoot, error) => shootIsShort(core, shoot, error),
    insideChanged(shoot, object) {
      if (object.kind === 'CertificateSigningRequest') certificates.add(keyOf(shoot));
      else queue.addAfter(keyOf(shoot), INSIDE_CHANGES_MS);
      if (object.kind === 'Node') repairs.addAfter(keyOf(shoot), REPAIR_LOOK_MS);
    },
  });
  registry.onChange((key, object) => {
    queue.add(key);
    controller.partChanged(key);
    if (object.kind !== 'Pod') return;
    certificates.add(key);
    if (object.metadata.labels?.[LABELS.role] === ROLES.machine) repairs.addAfter(key, REPAIR_LOOK_MS);
  });
  shoots.onChange((event) => {
    // An operation that fails says so in the status: taken for news, that would undo the queue's back-off.
    if (onlyStatusChanged(event)) return;
    const key = keyOf(event.object);
    controller.shootChanged(key, event.type === 'deleted' ? undefined : event.object);
    queue.add(key);
  });
  clusters.onChange((event) => {
    // Its status mirrors that of its Shoot: taken for news, a deletion that fails would never back off.
    if (onlyStatusChanged(event)) return;
    // It held its Shoot, which somebody had deleted.
    const key = keyOf(event.object);
    if (shoots.get(key)?.metadata.deletionTimestamp) queue.add(key);
  });
  kubeconfigs.onChange(({ object }) => queue.add(keyOf(object).replace(/-kubeconfig$/, '')));
  profiles.onChange((event) => {
    if (!concernsUsers(event)) return;
    const { name } = event.object.metadata;
    for (const shoot of shoots.list()) if (shootProfileName(shoot.spec) === name) queue.add(keyOf(shoot));
  });
  seeds.onChange((event) => {
    if (onlyFinalizersChanged(event)) return;
    const { name } = event.object.metadata;
    for (const shoot of shoots.list())
      if (!shoot.status?.seedName || shoot.status.seedName === name) queue.add(keyOf(shoot));
  });
  return {
    controllers: [
      {
        name: 'shoot',
        queue,
        concurrency: OPERATIONS_AT_ONCE,
        timeoutMs: OPERATION_LIMIT_MS,
        reconcile: (key, stop) => controller.reconcile(key, stop),
        failed: failuresOf(core, shoots),
      },
      {
        name: 'certificates',
        queue: certificates,
        concurrency: CERTIFICATES_AT_ONCE,
        // What does not answer by then is a cluster whose own webhooks hold it up.
        timeoutMs: 60_000,
        reconcile: (key, stop) => controller.certificates(key, stop),
      },
      {
        name: 'repair',
        queue: repairs,
        concurrency: REPAIRS_AT_ONCE,
        timeoutMs: 60_000,
        reconcile: (key, stop) => controller.repair(key, stop),
      },
    ],
    close: () => controller.stop(),
  };
}
