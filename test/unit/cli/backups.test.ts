import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { access, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ANNOTATIONS } from '../../../operator/api/group.ts';
import { backupBucketName } from '../../../operator/api/names.ts';
import { gardenKubeconfigFile } from '../../../operator/cli/garden.ts';
import { main } from '../../../operator/cli/main.ts';
import { createTerminal } from '../../../operator/cli/terminal.ts';
import { snapshotName } from '../../../operator/controllers/backup/plan.ts';
import { writeKubeconfigText } from '../../../operator/pki/kubeconfig.ts';

const T0 = Date.parse('2026-11-21T12:00:00Z');
const database = randomBytes(1024);
const whole = Buffer.concat([database, createHash('sha256').update(database).digest()]);

/** What a garden's API server answers, by the end of the path; of the Shoot, what is asked to change is in `patches`. */
let objects: Record<string, object>;
let patches: { metadata: { annotations: Record<string, string> } }[];
let onPatch: () => Promise<void>;
let server: Server;
let home: string;

const shoot = {
  metadata: { name: 'blue', namespace: 'default', uid: 'u-1' },
  spec: { provider: {} },
  status: { seedName: 'local' },
};
const seed = (backup?: object) => ({
  metadata: { name: 'local', uid: 's-1' },
  spec: { provider: { type: 'local', region: 'local' }, ...(backup && { backup }) },
});
const list = (...items: object[]) => ({ apiVersion: 'v1', kind: 'List', metadata: { resourceVersion: '1' }, items });
const inBucket = (key: string) => join(home, 'clouds', 'backups', 'local', backupBucketName('s-1'), ...key.split('/'));
async function stored(uid: string, revision: number, hours: number, bytes = whole): Promise<string> {
  const name = snapshotName(revision, new Date(T0 + hours * 3600_000));
  const file = inBucket(`shoot--default--blue/${uid}/${name}`);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, bytes);
  return name;
}

beforeEach(async () => {
  objects = {
    'namespaces/kube-system': { metadata: { name: 'kube-system', uid: 'g1' } },
    'shoots/blue': shoot,
    seeds: list(seed({ provider: 'local' })),
    cloudprofiles: list({ metadata: { name: 'local' }, spec: { type: 'local' } }),
  };
  patches = [];
  onPatch = async () => {};
  server = createServer((request, response) => {
    void (async () => {
      const path = (request.url ?? '').split('?')[0]!;
      const found = Object.entries(objects).find(([end]) => path.endsWith(`/${end}`))?.[1];
      if (request.method === 'PATCH') {
        let body = '';
        for await (const chunk of request) body += chunk;
        patches.push(JSON.parse(body));
        await onPatch();
      }
      response.statusCode = found ? 200 : 404;
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(found ?? { kind: 'Status', code: 404, reason: 'NotFound', message: 'not found' }));
    })();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  home = await mkdtemp(join(tmpdir(), 'coppice-cli-'));
  const file = gardenKubeconfigFile({ COPPICE_HOME: home });
  await mkdir(dirname(file), { recursive: true });
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  await writeFile(file, writeKubeconfigText({ server: url, ca: '', token: 't', name: 'garden', user: 'admin' }));
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await rm(home, { recursive: true, force: true });
});

async function cli(...words: string[]) {
  const out: string[] = [];
  const err: string[] = [];
  const terminal = createTerminal({
    out: { write: (text) => void out.push(text) },
    err: { write: (text) => void err.push(text) },
    env: {},
  });
  const env = { COPPICE_HOME: home, HOME: home };
  const code = await main(['backups', ...words], terminal, env, new AbortController().signal);
  return { out: out.join(''), err: err.join(''), code };
}

describe('coppice backups', () => {
  it('lists snapshots of this cluster, and not of an earlier cluster of the same name', async () => {
    await stored('u-0', 5, -10);
    const [first, second] = [await stored('u-1', 12, -2), await stored('u-1', 40, -1)];
    const { out, code } = await cli('blue');
    expect(code).toBe(0);
    expect(out).toBe(
      `NAME                                TIME                   REVISION   SIZE\n${first}   2026-11-21T10:00:00Z   12         0.0 MiB\n${second}   2026-11-21T11:00:00Z   40         0.0 MiB\n`,
    );
  });

  it('finds snapshots of a deleted cluster', async () => {
    delete objects['shoots/blue'];
    const name = await stored('u-0', 5, -10);
    expect(JSON.parse((await cli('blue', '-o', 'json')).out).backups).toMatchObject([{ name, revision: 5 }]);
  });

  it.each([
    ['a cluster that never was', () => void delete objects['shoots/blue'], 3, /no Shoot "blue"/],
    [
      'a cluster whose seed keeps none',
      () => {
        objects.seeds = list(seed());
      },
      3,
      /has no bucket for backups; name a bucket in spec\.backup/,
    ],
    [
      'a cluster that a cloud runs',
      () => {
        delete objects['shoots/blue'];
        objects['workerclusters/blue'] = { metadata: { name: 'blue', namespace: 'default' } };
      },
      1,
      /does not host the control plane/,
    ],
  ])('says what is wrong with %s', async (_, change, code, message) => {
    change();
    expect(await cli('blue')).toMatchObject({ code, err: expect.stringMatching(message) });
  });

  it('downloads the newest or the named snapshot with mode 0600', async () => {
    const first = await stored(
      'u-1',
      12,
      -2,
      Buffer.concat([database, createHash('sha256').update(database).digest()]),
    );
    await stored('u-1', 40, -1);
    const file = join(home, 'got.db');
    expect((await cli('blue', '--download', file)).code).toBe(0);
    expect((await readFile(file)).equals(whole)).toBe(true);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await cli('blue', '--download', join(home, 'other.db'), '--snapshot', first)).out).toContain(first);
  });

  it('overwrites no file, and removes a damaged download', async () => {
    await stored('u-1', 12, -2, whole.subarray(0, -1));
    const [mine, other] = [join(home, 'mine.db'), join(home, 'other.db')];
    await writeFile(mine, 'mine');
    expect(await cli('blue', '--download', mine)).toMatchObject({ code: 1, err: expect.stringContaining('exists') });
    expect(await readFile(mine, 'utf8')).toBe('mine');
    expect(await cli('blue', '--download', other)).toMatchObject({ code: 1, err: expect.stringContaining('damaged') });
    await expect(access(other)).rejects.toThrow();
  });

  it('requests a snapshot by an annotation with a time, and waits for a newer snapshot', async () => {
    await stored('u-1', 12, -2);
    onPatch = async () => {
      const at = Date.parse(patches[0]!.metadata.annotations[ANNOTATIONS.backupRequestedAt]!);
      await stored('u-1', 77, (at - T0) / 3600_000);
    };
    const { out, code } = await cli('blue', '--now');
    expect(code).toBe(0);
    expect(out).toContain('77');
    expect(patches).toHaveLength(1);
  });

  it('ignores problems reported before the request', async () => {
    const conditions = [{ type: 'BackupReady', status: 'False', message: 'the seed has no bucket yet' }];
    let reads = 0;
    Object.defineProperty(objects, 'shoots/blue', {
      enumerable: true,
      get: () => {
        const at = patches[0]?.metadata.annotations[ANNOTATIONS.backupRequestedAt];
        // The second look finds what was asked for.
        if (at !== undefined && reads++ === 1) void stored('u-1', 77, (Date.parse(at) - T0) / 3600_000);
        return { ...shoot, status: { ...shoot.status, conditions } };
      },
    });
    const { out, err, code } = await cli('blue', '--now');
    expect([code, err]).toEqual([0, 'Waiting for a snapshot of blue ...\n']);
    expect(out).toContain('77');
  });

  it('does not wait for snapshots of a SelfManaged cluster', async () => {
    const workers = [{ name: 'control-plane', controlPlane: {} }];
    objects['shoots/blue'] = { ...shoot, spec: { provider: { workers } } };
    expect(await cli('blue', '--now')).toMatchObject({
      code: 1,
      err: expect.stringContaining('on its own machines'),
    });
    expect(patches).toEqual([]);
  });

  it('does not wait for a snapshot that cannot come', async () => {
    const message = 'the cloud says no. Do this.';
    const conditions = [{ type: 'BackupReady', status: 'False', message, codes: ['ERR_INFRA_UNAUTHORIZED'] }];
    objects['shoots/blue'] = { ...shoot, status: { ...shoot.status, conditions } };
    expect(await cli('blue', '--now')).toMatchObject({ code: 1, err: expect.stringContaining(message) });
  });

  it('gives up after --timeout', async () => {
    expect(await cli('blue', '--now', '--timeout', '100ms')).toMatchObject({
      code: 4,
      err: expect.stringContaining('within --timeout'),
    });
  });
});
