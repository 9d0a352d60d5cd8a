import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  ENCRYPTION_CONFIGURATION,
  encryptEarlierSecrets,
  ensureSecretsEncryption,
} from '../../../operator/garden/control-plane/secrets-encryption.ts';
import { StateDirectory } from '../../../operator/garden/state/state.ts';
import { SECRETS, type Secret } from '../../../operator/kube/resources.ts';
import { startApiserver, type TestApiserver } from '../../kit/apiserver.ts';

const AS_BEFORE = {
  apiVersion: 'apiserver.config.k8s.io/v1',
  kind: 'EncryptionConfiguration',
  resources: [{ resources: ['secrets'], providers: [{ identity: {} }] }],
};
const TREASURE = 'a treasure';
const now = new Date();
const later = new Date(+now + 91 * 24 * 3600_000);

let directory: StateDirectory;
let server: TestApiserver;
beforeAll(async () => {
  directory = new StateDirectory(await mkdtemp(join(tmpdir(), 'coppice-encryption-')));
  await directory.make();
  const file = directory.pki(ENCRYPTION_CONFIGURATION);
  await writeFile(file, JSON.stringify(AS_BEFORE), { mode: 0o600 });
  server = await startApiserver({ flags: [`--encryption-provider-config=${file}`] });
  // Something is in the garden's etcd.
  await mkdir(directory.path('etcd', 'member'), { recursive: true });
  await server.client.create({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'kept', namespace: 'default' },
    stringData: { what: TREASURE },
  });
});
afterAll(async () => {
  await server?.stop();
  await rm(directory.home, { recursive: true, force: true });
});

const inEtcd = async (): Promise<string> => (await server.dump())['/registry/secrets/default/kept']!;
/** Name of the key that it is encrypted with. */
const keyInEtcd = async () => /^k8s:enc:secretbox:v1:([^:]+):/.exec(await inEtcd())?.[1];
const read = async () => {
  const { data } = await server.client.get<Secret>(SECRETS, 'kept', 'default');
  return Buffer.from(data!.what!, 'base64').toString();
};
const restart = async () => {
  await server.kill();
  await server.start();
};

it('a garden of an earlier Coppice encrypts its stored Secrets, and each stays readable', async () => {
  expect(await inEtcd()).toContain(TREASURE);
  expect(await ensureSecretsEncryption(directory, now)).toBe(true);
  await restart();
  expect(await read()).toBe(TREASURE);
  expect(await encryptEarlierSecrets(directory, server.client, now)).toBeGreaterThan(0);
  expect(await keyInEtcd()).toBeDefined();
  expect(JSON.stringify(await server.dump())).not.toContain(TREASURE);
  // From here on the API server takes nothing that is not encrypted.
  await restart();
  expect(await read()).toBe(TREASURE);
  expect(await ensureSecretsEncryption(directory, now)).toBe(false);
  expect(await encryptEarlierSecrets(directory, server.client, now)).toBeUndefined();
});

it('a garden rotates its encryption key after three months, and rewrites all Secrets before it drops the first', async () => {
  const first = await keyInEtcd();
  expect(await ensureSecretsEncryption(directory, later)).toBe(true);
  await restart();
  expect(await read()).toBe(TREASURE);
  await encryptEarlierSecrets(directory, server.client, later);
  const second = await keyInEtcd();
  expect([second, second === first]).toEqual([expect.any(String), false]);
  await restart();
  expect(await read()).toBe(TREASURE);
});
