import { LABELS, ROLES } from '../../api/group.ts';
import { shootProfileName } from '../../api/shoot.ts';
import { TaskDurations } from '../../flow/graph.ts';
import { FairQueue } from '../../kube/fair-queue.ts';
import { keyOf } from '../../kube/resources.ts';
import { PKI_SECRET } from '../../shoot/pki.ts';
import { type Core, OPERATIONS_AT_ONCE, type Part, workersOfNamespace } from '../core.ts';
import { failuresOf } from '../failure.ts';
import { shootIsShort } from '../shortages.ts';
import { concernsUsers, onlyFinalizersChanged, onlyStatusChanged } from '../status-writer.ts';
import { ShootController } from './controller.ts';
import { isDeletedByHand, shootHolds } from './deletion/deleted-by-hand.ts';
import type { ShootBackups, ShootDependencies } from './dependencies.ts';
import { DNS_LOOKS } from './dns/dns-records.ts';
import { DRIFT_LOOKS } from './drift/drift.ts';

/** Inputs from other parts. */
interface ShootsOptions extends Pick<ShootDependencies, 'holds'> {
  readonly backups: ShootBackups;
  readonly accounts: Pick<ShootDependencies, 'namesAccount' | 'account' | 'dns'>;
}

/**
 * Timeout of an operation: longer than the longest task, a key rotation on machines in a cloud (in-cloud.ts), which
 * would otherwise never finish. Most tasks give up much sooner.
 */
export const OPERATION_LIMIT_MS = 7 * 3600_000;
/** Interval of status updates for pods inside of a cluster. */
const INSIDE_CHANGES_MS = 500;

/** Delay that groups nodes that become unhealthy together. */
const REPAIR_LOOK_MS = 2_000;
/** Parallel clusters in machine repair. */
const REPAIRS_AT_ONCE = 8;
/** Parallel clusters in the approval of certificates. */
const CERTIFICATES_AT_ONCE = 8;

/** Parallel clusters whose lost keys are restored. */
const KEYS_AT_ONCE = 8;

/** Creates the controllers of Shoots, of their keys, of kubelets' certificates and of machine repair. */
export function wireShoots(core: Core, { accounts, backups, holds }: ShootsOptions): Part {
  const { clusters, kubeconfigs, profiles, registry, seeds, shoots } = core;
  const queue = core.queues.shoots;
  const certificates = core.queue('certificates', { perNamespace: workersOfNamespace(CERTIFICATES_AT_ONCE) });
  const repairs = core.queue('repair', { perNamespace: workersOfNamespace(REPAIRS_AT_ONCE) });
  const keys = core.queue('keys', { perNamespace: workersOfNamespace(KEYS_AT_ONCE) });
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
    // A running operation reads keys at its start only, and may wait for minutes.
    if (object.kind === 'Secret' && object.metadata.name === PKI_SECRET) keys.add(key);
    if (object.kind !== 'Pod') return;
    certificates.add(key);
    if (object.metadata.labels?.[LABELS.role] === ROLES.machine) repairs.addAfter(key, REPAIR_LOOK_MS);
  });
  shoots.onChange((event) => {
    // A status written after a failure must not undo the queue's back-off.
    if (onlyStatusChanged(event)) return;
    const key = keyOf(event.object);
    controller.shootChanged(key, event.type === 'deleted' ? undefined : event.object);
    queue.add(key);
  });
  clusters.onChange((event) => {
    // The status mirrors the Shoot's; reacting to it would undo the back-off of a failing deletion.
    if (onlyStatusChanged(event)) return;
    // The deleted WorkerCluster was the hold of its deleted Shoot.
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
        // Longer only when the cluster's own webhooks hang.
        timeoutMs: 60_000,
        reconcile: (key, stop) => controller.certificates(key, stop),
      },
      {
        name: 'keys',
        queue: keys,
        concurrency: KEYS_AT_ONCE,
        timeoutMs: 60_000,
        reconcile: (key, stop) => controller.keys(key, stop),
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
