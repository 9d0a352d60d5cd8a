import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CONFIGMAPS, LEASES, SECRETS } from '../../../operator/kube/resources.ts';
import { auditParts } from '../../../operator/shoot/audit-log.ts';
import { startApiserver, type TestApiserver } from '../../kit/apiserver.ts';

interface Written {
  kind: string;
  level: string;
  verb: string;
  user: { username: string };
  objectRef?: { resource: string; name?: string };
  responseStatus?: { code: number };
}

let api: TestApiserver;
let directory: string;
const lines = async (): Promise<Written[]> => {
  const log = await readFile(join(api.directory, 'kube-apiserver.log'), 'utf8');
  const whole = log.slice(0, log.lastIndexOf('\n')).split('\n');
  return whole.filter((line) => line.startsWith('{"kind":"Event"')).map((line) => JSON.parse(line) as Written);
};
const ofResource = (all: Written[], resource: string) =>
  all.filter(({ objectRef }) => objectRef?.resource === resource);

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'coppice-audit-'));
  const { flags, files } = auditParts({ auditLog: true }, directory);
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
  api = await startApiserver({ flags: Object.entries(flags).map(([name, value]) => `--${name}=${value}`) });
});
afterAll(async () => {
  await api?.stop();
  await rm(directory, { recursive: true, force: true });
});

it('an API server logs who did what and who was refused, without contents', async () => {
  const { client } = api;
  const metadata = { name: 'password', namespace: 'default' };
  await client.create({ apiVersion: 'v1', kind: 'Secret', metadata, stringData: { value: 'never-written-down' } });
  await client.apply({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'heartbeat', namespace: 'default' },
    spec: { holderIdentity: 'node-1' },
  });
  await client.get(LEASES, 'heartbeat', 'default');
  const scheduler = api.connect(await api.certificate('system:kube-scheduler'));
  await scheduler.list(CONFIGMAPS).catch(() => {});
  const reader = api.connect({ token: api.readerToken });
  await expect(reader.get(SECRETS, 'password', 'default')).rejects.toThrow('403');

  await expect.poll(async () => ofResource(await lines(), 'secrets').length).toBeGreaterThanOrEqual(2);
  const all = await lines();
  const told = ofResource(all, 'secrets').map(({ level, verb, user, responseStatus }) => [
    level,
    verb,
    user.username,
    responseStatus?.code,
  ]);
  expect(told).toEqual([
    ['Metadata', 'create', 'admin', 201],
    ['Metadata', 'get', 'reader', 403],
  ]);
  expect(JSON.stringify(all)).not.toContain('never-written-down');
  // What a cluster does by itself all the time is not among it.
  expect(ofResource(all, 'leases')).toEqual([]);
  expect(all.filter(({ user }) => user.username === 'system:kube-scheduler')).toEqual([]);
});
