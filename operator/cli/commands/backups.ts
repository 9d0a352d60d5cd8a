import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { openProviders, providerFor } from '../../../providers/index.ts';
import { type BucketSource, type OpenBucket, openBucket } from '../../accounts/bucket-account.ts';
import { IdentityTokens } from '../../accounts/identity-tokens.ts';
import { type CredentialsSource, obtainCredentials } from '../../accounts/obtain-credentials.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import { findCondition, rfc3339 } from '../../api/conditions.ts';
import type { CredentialsBinding } from '../../api/credentialsbinding.ts';
import { isRetryable } from '../../api/errors.ts';
import { ANNOTATIONS } from '../../api/group.ts';
import { technicalID } from '../../api/names.ts';
import type { Seed } from '../../api/seed.ts';
import { controlPlaneWorker, type Shoot } from '../../api/shoot.ts';
import type { WorkloadIdentity } from '../../api/workloadidentity.ts';
import { BACKUP_READY } from '../../controllers/backup/conditions.ts';
import { writeVerified } from '../../controllers/backup/integrity.ts';
import { prefixOf, type Snapshot, snapshotsIn } from '../../controllers/backup/plan.ts';
import { dataDirectory } from '../../garden/toolchain/pulumi-engine.ts';
import type { KubeClient } from '../../kube/client.ts';
import { silent } from '../../kube/log.ts';
import {
  CLOUDPROFILES,
  CREDENTIALSBINDINGS,
  NAMESPACES,
  SECRETS,
  SEEDS,
  type Secret,
  SHOOTS,
  WORKLOADIDENTITIES,
} from '../../kube/resources.ts';
import { inNamespace } from '../clusterview.ts';
import { type CliConnection, connect } from '../connect.ts';
import type { Context } from '../context.ts';
import { CliError, EXIT, UsageError } from '../errors.ts';
import { SHOOT_KIND, WORKER_CLUSTER_KIND } from '../kinds.ts';
import { printObject } from '../output.ts';
import { renderTable } from '../render/table.ts';
import { missingError } from './get.ts';

/** Access to the backup buckets of seeds, with the rights of the person at the terminal. */
async function bucketSource(
  client: KubeClient,
  env: Record<string, string | undefined>,
  signal: AbortSignal,
): Promise<BucketSource> {
  // Buckets need no Pulumi program, so nothing calls the engine.
  const providers = openProviders({ engine: () => Promise.reject(new Error('no engine')), home: '', log: silent });
  const tokens = new IdentityTokens(client, () => new Date());
  const source: CredentialsSource = {
    secret: (namespace, name) => client.getOrUndefined<Secret>(SECRETS, name, namespace, { signal }),
    identity: (namespace, name) =>
      client.getOrUndefined<WorkloadIdentity>(WORKLOADIDENTITIES, name, namespace, { signal }),
    tokens,
  };
  const { metadata } = await client.get(NAMESPACES, 'kube-system', undefined, { signal });
  return {
    gardenID: metadata.uid ?? '',
    directory: dataDirectory(env),
    profiles: async () => (await client.list<CloudProfile>(CLOUDPROFILES, { signal })).items,
    // Without credentials only an operator that simulates clouds has a bucket.
    provider: (profile, withAccount) => providerFor(profile, providers, { simulate: !withAccount, withAccount }),
    binding: (namespace, name) =>
      client.getOrUndefined<CredentialsBinding>(CREDENTIALSBINDINGS, name, namespace, { signal }),
    credentials: (use) => obtainCredentials(source, use, signal),
    now: () => new Date(),
  };
}

const POLL_MS = 500;
/** After this time the operator's answer is about this request. */
const TAKEN_UP_MS = 3000;

/** Snapshots of one cluster with their buckets. */
type Found = { snapshot: Snapshot; bucket: OpenBucket }[];

/** `coppice backups NAME [--now] [--snapshot S] [--download FILE]`. */
export async function run(context: Context): Promise<undefined> {
  const { options, positionals, signal } = context;
  const name = positionals[0]!;
  const [file, wanted] = [options.text('download'), options.text('snapshot')];
  if (wanted !== undefined && file === undefined)
    throw new UsageError('--snapshot needs --download', 'add --download FILE');
  const connection = await connect(context);
  const { client, namespace } = connection;
  const shoot = await client.getOrUndefined<Shoot>(SHOOTS, name, namespace, { signal });
  const buckets = await bucketsOf(context, connection, name, shoot);
  if (options.flag('now')) await takeOne(context, connection, name, shoot, buckets);

  const found = await look(buckets, shoot ? prefixOf(shoot) : `${technicalID(namespace, name)}/`);
  if (!shoot && found.length === 0) throw await missingError(client, SHOOT_KIND, name, namespace, signal);
  if (file === undefined) return show(context, found);
  const chosen = wanted === undefined ? found.at(-1) : found.find(({ snapshot }) => snapshot.name === wanted);
  if (!chosen) {
    throw new CliError(`there is no snapshot ${wanted ?? ''} of ${name}`.replace('  ', ' '), {
      exitCode: EXIT.notFound,
      advice: `"coppice backups ${name}${inNamespace(namespace)}" lists all snapshots; --now takes one`,
    });
  }
  await download(context, chosen, file, technicalID(namespace, name));
}

/** Bucket of the cluster's seed. If the cluster is gone: all buckets. */
async function bucketsOf(
  context: Context,
  { client, namespace }: CliConnection,
  name: string,
  shoot: Shoot | undefined,
): Promise<OpenBucket[]> {
  const { env, signal } = context;
  const seeds = (await client.list<Seed>(SEEDS, { signal })).items;
  const its = shoot ? seeds.filter(({ metadata }) => metadata.name === shoot.status?.seedName) : seeds;
  const keeping = its.filter(({ spec }) => spec.backup);
  if (!shoot && (await client.getOrUndefined(WORKER_CLUSTER_KIND.resource, name, namespace, { signal }))) {
    throw new CliError(`Coppice does not host the control plane of ${name}, so it cannot back up its etcd`, {
      advice: 'use the backups of the cloud that runs it',
    });
  }
  if (shoot && controlPlaneWorker(shoot.spec)) {
    throw new CliError(`the etcd of ${name} runs on its own machines, and Coppice takes no snapshots of it`, {
      advice: 'see docs/tasks/self-managed.md',
    });
  }
  if (keeping.length === 0) {
    if (!shoot) throw await missingError(client, SHOOT_KIND, name, namespace, signal);
    const seed = shoot.status?.seedName;
    throw new CliError(
      seed ? `seed ${seed}, which hosts ${name}, has no bucket for backups` : `${name} has no seed yet`,
      {
        exitCode: EXIT.notFound,
        ...(seed && { advice: 'name a bucket in spec.backup of the Seed: see docs/tasks/backups.md' }),
      },
    );
  }
  const source = await bucketSource(client, env, signal);
  return Promise.all(keeping.map((seed) => openBucket(source, seed, signal)));
}

async function look(buckets: readonly OpenBucket[], prefix: string): Promise<Found> {
  const found = await Promise.all(
    buckets.map(async (bucket) => {
      const snapshots = snapshotsIn(await bucket.buckets.list(bucket.ctx, prefix));
      return snapshots.map((snapshot) => ({ snapshot, bucket }));
    }),
  );
  return found.flat().sort((a, b) => +a.snapshot.takenAt - +b.snapshot.takenAt);
}

/** Requests a snapshot and waits for it. */
async function takeOne(
  { terminal, signal }: Context,
  { client, namespace }: CliConnection,
  name: string,
  shoot: Shoot | undefined,
  buckets: readonly OpenBucket[],
): Promise<void> {
  if (!shoot) throw await missingError(client, SHOOT_KIND, name, namespace, signal);
  // Names of snapshots have whole seconds. Later than the last snapshot, even if this clock is behind that of its writer.
  const last = (await look(buckets, prefixOf(shoot))).at(-1)?.snapshot.takenAt;
  const at = new Date(Math.ceil((Math.max(Date.now(), +(last ?? 0)) + 1) / 1000) * 1000);
  await client.mergePatch<Shoot>(
    SHOOTS,
    name,
    namespace,
    { metadata: { annotations: { [ANNOTATIONS.backupRequestedAt]: rfc3339(at) } } },
    { signal },
  );
  terminal.note(`Waiting for a snapshot of ${name} ...`);
  let said: string | undefined;
  for (;;) {
    const found = await look(buckets, prefixOf(shoot));
    if (found.some(({ snapshot }) => snapshot.takenAt >= at)) return;
    const answer = await trouble(client, shoot, signal);
    if (answer && !isRetryable(answer.codes) && Date.now() > +at + TAKEN_UP_MS)
      throw new CliError(`no snapshot of ${name}: ${answer.message}`);
    // An earlier answer may be about the state before, for example a bucket in creation.
    if (answer && answer.message !== said && Date.now() > +at + TAKEN_UP_MS) {
      terminal.note(answer.message);
      said = answer.message;
    }
    // This timer may be all that keeps the process alive.
    await sleep(POLL_MS, undefined, { signal });
  }
}

/** Problem that the operator reports. */
async function trouble(
  client: KubeClient,
  { metadata }: Shoot,
  signal: AbortSignal,
): Promise<{ message: string; codes: string[] } | undefined> {
  const now = await client.getOrUndefined<Shoot>(SHOOTS, metadata.name, metadata.namespace, { signal });
  if (now?.metadata.uid !== metadata.uid) throw new CliError(`${metadata.name} was deleted in the meantime`);
  const condition = findCondition(now?.status?.conditions, BACKUP_READY);
  if (condition?.status !== 'False') return undefined;
  return { message: condition.message ?? '', codes: condition.codes ?? [] };
}

async function download(
  { terminal, signal }: Context,
  { snapshot, bucket }: Found[number],
  file: string,
  seedNamespace: string,
): Promise<void> {
  const stream = await bucket.buckets.get(bucket.ctx, snapshot.key);
  try {
    await writeVerified(file, stream as AsyncIterable<Buffer>, signal);
  } catch (error) {
    stream.destroy();
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') {
      throw new CliError(`${file} exists already, and coppice does not overwrite it`, { advice: 'name another file' });
    }
    // Remove a partial download.
    await rm(file, { force: true });
    throw error;
  }
  terminal.print(
    `${snapshot.name} is in ${file} (${snapshot.size} bytes, digest verified).`,
    `Keep Secret pki of namespace ${seedNamespace} in the seed: without its key the Secrets in this snapshot cannot be read. docs/tasks/restore.md tells how to restore an etcd.`,
  );
}

async function show({ options, terminal }: Context, found: Found): Promise<undefined> {
  const format = options.text('output');
  if (format === 'json' || format === 'yaml') {
    const backups = found.map(({ snapshot: { takenAt, ...rest }, bucket }) => ({
      ...rest,
      takenAt: rfc3339(takenAt),
      seed: bucket.ctx.bucket.seed,
      bucket: bucket.ctx.bucket.name,
    }));
    await printObject(terminal, format, { backups });
    return;
  }
  if (found.length === 0) {
    terminal.note(
      'No snapshots yet: the operator takes the first when the cluster has been created; --now takes one now.',
    );
    return;
  }
  const rows = found.map(({ snapshot }) => [
    snapshot.name,
    rfc3339(snapshot.takenAt),
    String(snapshot.revision),
    `${(snapshot.size / 1024 ** 2).toFixed(1)} MiB`,
  ]);
  const width = terminal.width === undefined ? {} : { width: terminal.width };
  terminal.print(...renderTable(['NAME', 'TIME', 'REVISION', 'SIZE'], rows, { ...width, paint: terminal.paint }));
}
