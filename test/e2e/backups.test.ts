import { once } from 'node:events';
import { mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { findCondition, isTrue } from '../../operator/api/conditions.ts';
import { ANNOTATIONS } from '../../operator/api/group.ts';
import { backupBucketName, COMPONENTS } from '../../operator/api/names.ts';
import type { Seed, SeedSpec } from '../../operator/api/seed.ts';
import {
  CONFIGMAPS,
  EVENTS,
  type KubeObject,
  SECRETS,
  SEEDS,
  type Secret,
  SHOOTS,
} from '../../operator/kube/resources.ts';
import { freePorts } from '../kit/apiserver.ts';
import {
  clusterClient,
  coppice,
  deleteCluster,
  e2e,
  follow,
  garden,
  gardenClient,
  makeCluster,
  type Name,
  ok,
  PATIENCE_MS,
  seedNamespace,
  until,
  untilReady,
} from '../kit/garden.ts';
import { COPPICE, runCommand, startCommand } from '../kit/run.ts';
import { argsOnPage, commandsOnPage } from '../kit/task-pages/on-page.ts';
import { testTools } from '../kit/tools.ts';
import { openShell } from '../kit/transcripts/walk.ts';

interface Listed {
  name: string;
  takenAt: string;
  revision: number;
  size: number;
}

const PASSWORD = 'a password that is nowhere else';

e2e('backups of the etcd of a hosted cluster', () => {
  let seed: Seed;
  let cluster: Name;
  let folder: string;
  let tools: Record<'etcd' | 'etcdctl' | 'etcdutl', string>;

  const backup = (change: SeedSpec['backup'] | null) =>
    gardenClient().mergePatch<Seed>(SEEDS, 'local', undefined, { spec: { backup: change } });
  const list = async ({ name }: Name, ...options: string[]): Promise<Listed[]> =>
    JSON.parse(ok(await coppice(['backups', name, '-o', 'json', ...options], { timeoutMs: PATIENCE_MS }))).backups;
  /** Paths in the bucket, which is a directory here. */
  const inBucket = async (): Promise<string[]> => {
    const root = join(garden.home, 'clouds', 'backups', 'local', backupBucketName(seed.metadata.uid!));
    const entries = await readdir(root, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1));
  };

  /** A command of the page for the embedded garden and this cluster, with more time than an idle machine needs. */
  const ofThisCluster = (command: string): string =>
    command
      .replace('kubectl --kubeconfig eu.yaml', 'kubectl --context coppice/garden')
      .replace('shoot--default--demo', seedNamespace(cluster))
      .replace('shoot demo', `shoot ${cluster.name}`)
      .replace('--timeout=60s', '--timeout=240s');

  /** What the cluster's Secret says. */
  const password = async (): Promise<string> => {
    const { data } = await (await clusterClient(cluster)).get<Secret>(SECRETS, 'kept', 'default');
    return Buffer.from(data!.what!, 'base64').toString();
  };
  /** Names of the keys that API servers have for Secrets; they write with the first. */
  const keyNames = async (): Promise<string[]> => {
    const { data } = await gardenClient().get<Secret>(SECRETS, COMPONENTS.apiServer, seedNamespace(cluster));
    const { resources } = JSON.parse(Buffer.from(data!['encryption.json']!, 'base64').toString());
    return resources[0].providers.flatMap((provider: { secretbox: { keys: { name: string }[] } }) =>
      provider.secretbox.keys.map(({ name }) => name),
    );
  };

  beforeAll(async () => {
    tools = await testTools('etcd', 'etcdctl', 'etcdutl');
    folder = await mkdtemp(join(tmpdir(), 'coppice-e2e-backups-'));
    seed = await backup({ provider: 'local', fullSnapshotPeriod: '1h', maxBackupsLimitBasedGC: 2 });
    cluster = await makeCluster();
    await untilReady(cluster);
    const client = await clusterClient(cluster);
    const metadata = { name: 'kept', namespace: 'default' };
    await client.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { what: 'a treasure' } });
    await client.create({ apiVersion: 'v1', kind: 'Secret', metadata, stringData: { what: PASSWORD } });
  });
  afterAll(async () => {
    await backup(null);
    await rm(folder, { recursive: true, force: true });
  });

  it('have a bucket, and the Seed reports it', async () => {
    const seeds = await follow<Seed>(gardenClient(), SEEDS);
    const found = await seeds.waitFor(
      () => isTrue(seeds.get('local')?.status?.conditions, 'BackupBucketsReady') && seeds.get('local'),
      { timeoutMs: PATIENCE_MS, what: 'the seed to have a bucket' },
    );
    expect(findCondition(found.status?.conditions, 'BackupBucketsReady')?.message).toContain(
      backupBucketName(seed.metadata.uid!),
    );
  });

  it('begin by themselves once the cluster is created', async () => {
    const condition = await until(
      cluster,
      (found) => {
        const said = findCondition(found?.status?.conditions, 'BackupReady');
        return said?.status === 'True' && said;
      },
      'to be backed up',
    );
    const [first] = await list(cluster);
    expect(condition.message).toContain(first!.name);
    expect(first).toMatchObject({ revision: expect.any(Number), size: expect.any(Number) });
  });

  it('are taken on request and downloaded for the owner only, never over an existing file', async () => {
    const file = join(folder, 'snapshot.db');
    const before = await list(cluster);
    const named = { demo: cluster.name };
    const now = argsOnPage('docs/tasks/backups.md', 'coppice backups demo --now', named);
    ok(await coppice(now, { timeoutMs: PATIENCE_MS }));
    const download = { ...named, 'demo.db': file };
    ok(await coppice(argsOnPage('docs/tasks/backups.md', 'coppice backups demo --download demo.db', download)));
    const newest = (await list(cluster)).at(-1)!;
    const place = { NAME: cluster.name, NAMESPACE: cluster.namespace };
    for (const args of [
      argsOnPage('docs/tasks/backups.md', 'coppice backups demo', named),
      argsOnPage('docs/tasks/alerts.md', 'coppice backups NAME -n NAMESPACE', place),
    ])
      expect(ok(await coppice(args))).toContain(newest.name);
    expect(before.map(({ name }) => name)).not.toContain(newest.name);
    const { mode, size } = await stat(file);
    expect([mode & 0o777, size]).toEqual([0o600, newest.size]);
    const again = await coppice(['backups', cluster.name, '--download', file]);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('exists already')]);
  });

  it("contain the cluster's data: an etcd restored from one serves it", async () => {
    const { etcd, etcdctl, etcdutl } = tools;
    const [file, data] = [join(folder, 'snapshot.db'), join(folder, 'data')];
    const status = JSON.parse(ok(await runCommand(etcdutl, ['snapshot', 'status', file, '-w', 'json'])));
    const { revision } = (await list(cluster)).at(-1)!;
    expect(status.revision).toBeGreaterThanOrEqual(revision);
    ok(await runCommand(etcdutl, ['snapshot', 'restore', file, '--data-dir', data]));
    const [client, peer] = await freePorts(2);
    const url = `http://127.0.0.1:${client}`;
    const server = startCommand(etcd, [
      `--data-dir=${data}`,
      `--listen-client-urls=${url}`,
      `--advertise-client-urls=${url}`,
      `--listen-peer-urls=http://127.0.0.1:${peer}`,
      '--log-level=error',
    ]);
    try {
      const timeouts = ['--dial-timeout=30s', '--command-timeout=30s'];
      const get = async (...what: string[]) =>
        ok(await runCommand(etcdctl, [`--endpoints=${url}`, ...timeouts, 'get', ...what, '--print-value-only']));
      expect(await get('/registry/configmaps/default/kept')).toContain('a treasure');
      // Of a Secret nobody reads anything there: not the plain text, nor base64 of it.
      const [key] = await keyNames();
      expect(await get('/registry/secrets/default/kept')).toContain(`k8s:enc:secretbox:v1:${key}:`);
      const all = await get('/registry/', '--prefix');
      expect(all).toContain('a treasure');
      for (const text of [PASSWORD, Buffer.from(PASSWORD).toString('base64')]) expect(all).not.toContain(text);
    } finally {
      const ended = once(server, 'close');
      server.kill('SIGKILL');
      await ended;
    }
  });

  it('stay usable after a requested rotation of the encryption key of Secrets', async () => {
    const earlier = await keyNames();
    expect(earlier).toHaveLength(1);
    const operation = { metadata: { annotations: { [ANNOTATIONS.operation]: 'rotate-etcd-encryption-key' } } };
    await gardenClient().mergePatch(SHOOTS, cluster.name, cluster.namespace, operation);
    const events = await follow<KubeObject>(gardenClient(), EVENTS, { namespace: cluster.namespace });
    await events.waitFor(
      () => events.list().find((e) => e.reason === 'SecretsEncrypted' && e.involvedObject?.name === cluster.name),
      { timeoutMs: PATIENCE_MS, what: 'Secrets to be encrypted with another key' },
    );
    expect(await password()).toBe(PASSWORD);
    const { annotations } = (await gardenClient().get(SHOOTS, cluster.name, cluster.namespace)).metadata;
    expect(annotations).not.toHaveProperty([ANNOTATIONS.operation]);
    // The earlier one is read still, as long as there are snapshots of its time.
    expect(await keyNames()).toEqual([expect.not.stringContaining(earlier[0]!), earlier[0]]);
    await untilReady(cluster);
  });

  it('restore a cluster by the commands of docs/tasks/restore.md', async () => {
    const before = await clusterClient(cluster);
    await before.delete(CONFIGMAPS, 'kept', 'default');
    await before.delete(SECRETS, 'kept', 'default');
    const kubeconfig = join(folder, 'config');
    const shell = openShell({ home: garden.home, tools: inject('tools'), kubectl: inject('kubectl'), kubeconfig });
    const here = `cd ${folder}; PATH=$PATH:${dirname(tools.etcdutl)}; ${COPPICE} kubeconfig --garden --merge`;
    try {
      const commands = commandsOnPage('docs/tasks/restore.md');
      const from = commands.findIndex((command) => command.startsWith('coppice backups demo --download demo.db'));
      // The snapshot from before the key that the cluster writes with now is there already.
      await rename(join(folder, 'snapshot.db'), join(folder, 'demo.db'));
      const steps = commands.slice(from + 1);
      const [scaleIn] = steps.filter((step) => step.includes('--replicas=0'));
      // No volume is lost here: what stands before the steps for that case is not carried out.
      const lost = commands.slice(0, from).map((command) => `${command} --dry-run=server`);
      steps.splice(steps.indexOf(scaleIn!), 0, ...lost);
      for (const step of [here, ...steps]) {
        const said = await shell.run(ofThisCluster(step), PATIENCE_MS);
        expect(said.code, `${step}: ${said.output}`).toBe(0);
      }
    } finally {
      await shell.end();
    }
    await untilReady(cluster);
    const restored = await (await clusterClient(cluster)).get(CONFIGMAPS, 'kept', 'default');
    expect(restored.data).toEqual({ what: 'a treasure' });
    // The snapshot is from before the key that the cluster writes with now.
    expect(await password()).toBe(PASSWORD);
    // What is written from now on is newer than all that was ever seen of it.
    expect((await list(cluster, '--now')).at(-1)?.revision).toBeGreaterThan(1_000_000_000);
  });

  it("are kept up to the Seed's limit, the newest ones", async () => {
    for (let i = 0; i < 2; i++) await list(cluster, '--now');
    // The old ones go once the new one is there.
    await expect.poll(() => list(cluster), { timeout: PATIENCE_MS }).toHaveLength(2);
    expect((await inBucket()).filter((key) => key.startsWith(`${seedNamespace(cluster)}/`))).toHaveLength(2);
  });

  it("of a deleted cluster are kept for the Seed's period, and given to no other cluster", async () => {
    const kept = await list(cluster);
    await backup({
      provider: 'local',
      fullSnapshotPeriod: '1h',
      maxBackupsLimitBasedGC: 2,
      deletionGracePeriodHours: 1,
    });
    const { metadata } = await gardenClient().get(SHOOTS, cluster.name, cluster.namespace);
    await deleteCluster(cluster);
    expect(await list(cluster)).toEqual(kept);
    expect(await inBucket()).toContainEqual(
      expect.stringMatching(new RegExp(`^deleted/${seedNamespace(cluster)}/${metadata.uid}/\\d+$`)),
    );
    // Another of the same name has its own, and sees no others.
    await makeCluster({}, cluster);
    await untilReady(cluster);
    const own = await list(cluster, '--now');
    const names = (listed: Listed[]) => listed.map(({ name }) => name).sort();
    expect(names(own).filter((name) => names(kept).includes(name))).toEqual([]);
    await deleteCluster(cluster);
    expect(names(await list(cluster))).toEqual(names([...kept, ...own]));
    await backup({ provider: 'local', deletionGracePeriodHours: 0 });
    await expect.poll(inBucket, { timeout: PATIENCE_MS }).toEqual([]);
  });

  it('end when the Seed no longer requests them', async () => {
    await backup(null);
    const seeds = await follow<Seed>(gardenClient(), SEEDS);
    await seeds.waitFor(
      () => !findCondition(seeds.get('local')?.status?.conditions, 'BackupBucketsReady') && seeds.get('local'),
      { timeoutMs: PATIENCE_MS, what: 'the seed to speak of no bucket' },
    );
    const said = await coppice(['backups', cluster.name]);
    expect([said.code, said.stderr]).toEqual([3, expect.stringContaining(cluster.name)]);
  });
});
