import { holdsFrom, sleepHoldsFrom } from './clusters/deletion-gate.ts';
import { wireAttached } from './controllers/attached/wiring.ts';
import { wireAutoscaling } from './controllers/autoscaling/wiring.ts';
import { wireBackups } from './controllers/backup/wiring.ts';
import { wireBurst } from './controllers/burst/wiring.ts';
import { wireCloudProfiles } from './controllers/cloudprofile/wiring.ts';
import { type CoreOptions, openCore, type Part } from './controllers/core.ts';
import { wireCredentials } from './controllers/credentials/wiring.ts';
import { wireKubeconfigs } from './controllers/kubeconfigs/wiring.ts';
import { wireManaged } from './controllers/managed/wiring.ts';
import { wireHubs } from './controllers/membership/wiring.ts';
import { wireQuotas } from './controllers/quota/wiring.ts';
import { wireSeeds } from './controllers/seed/wiring.ts';
import { wireShoots } from './controllers/shoot/wiring.ts';
import { wireWorkerClusters } from './controllers/workercluster/wiring.ts';
import { runController } from './kube/controller.ts';
import { tenantSteps } from './kube/tenant-steps.ts';

/** Options of startOperator. */
export type OperatorOptions = CoreOptions;

export interface Operator {
  /** Whether all caches are synced. */
  ready(): boolean;
  stop(): Promise<void>;
}

/** Time for running work to end when the operator stops, milliseconds. */
const GRACE_MS = 1000;

/** Wires the controllers of one garden and starts them. Resolves when they run. */
export async function startOperator(options: OperatorOptions, signal: AbortSignal): Promise<Operator> {
  const core = await openCore(options, signal);
  const { clusters, shoots, seeds, profiles, log, metrics } = core;
  tenantSteps.reportTo(log, metrics);

  // Each part receives what it needs of parts created before it: a tree.
  const credentials = wireCredentials(core);
  const managed = wireManaged(core, credentials);
  const attached = wireAttached(core);
  const backup = wireBackups(core, credentials.ofBuckets);
  const quota = wireQuotas(core);
  const autoscaling = wireAutoscaling(core, quota.granted, managed);
  const seed = wireSeeds(core, backup);
  const hubs = wireHubs(core);
  // A new kind of holder is one more source here.
  const holds = holdsFrom(seed.holds, hubs.holds);
  const parts: readonly Part[] = [
    managed,
    attached,
    credentials,
    backup,
    wireCloudProfiles(core),
    quota,
    autoscaling,
    seed,
    hubs,
    wireBurst(core, hubs, quota),
    wireWorkerClusters(core, {
      managed: managed.managed,
      attached: attached.attached,
      granted: quota.granted,
      autoscaler: autoscaling.autoscaler,
      holds,
      // Hosted control planes would end with the cluster's nodes.
      keepsAwake: sleepHoldsFrom(seed.holds, hubs.keepsAwake),
    }),
    wireKubeconfigs(core),
    wireShoots(core, { accounts: credentials.ofShoots, backups: backup.backups, holds }),
  ];

  const caches = [...core.caches, ...parts.flatMap((part) => part.caches ?? [])];
  for (const cache of caches) cache.start();
  await Promise.all(caches.map((cache) => cache.whenSynced(signal)));
  for (const part of parts) await part.prepare?.(signal);
  const controllers = parts
    .flatMap((part) => part.controllers)
    .map((controller) => runController({ ...controller, log, metrics }));
  log.info(
    { clusters: clusters.size, shoots: shoots.size, seeds: seeds.size, profiles: profiles.size },
    'the operator runs',
  );

  return {
    ready: () => caches.every((cache) => cache.synced && cache.lastError === undefined),
    async stop() {
      await Promise.all(controllers.map((controller) => controller.stop(GRACE_MS)));
      await Promise.all(parts.flatMap((part) => part.close?.() ?? []));
      await core.registry.closeAll();
      await Promise.all(caches.map((cache) => cache.stop()));
      log.info({}, 'the operator has stopped');
    },
  };
}
