import { expect } from 'vitest';
import type { KubeClient } from '../../operator/kube/client.ts';
import type { ConfigMap, Secret } from '../../operator/kube/resources.ts';

const PASSWORD = 'what nobody is to read on a disk';
const NOTE = 'what anybody may read on a disk';
const name = 'on-disk';
const namespace = 'default';

/** Writes a Secret, and a ConfigMap to see by that it was looked in the right place. */
export async function writeForDisk(client: KubeClient): Promise<void> {
  await client.create({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace },
    data: { note: NOTE },
  } as ConfigMap);
  await client.create({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace },
    stringData: { password: PASSWORD },
  } as Secret);
}

/** Where an API server has that Secret, and what is in it. */
export const SECRET_URL = `/api/v1/namespaces/${namespace}/secrets/${name}`;
export const SAID = Buffer.from(PASSWORD).toString('base64');

/**
 * Expects that the files of an etcd have that Secret, as nobody can read it without a key.
 * @param isFound whether a command on its machine ends well; of grep: whether it found something
 */
export async function expectEncrypted(isFound: (command: string[]) => Promise<boolean>): Promise<void> {
  const has = (text: string) => isFound(['grep', '--recursive', '--quiet', '--text', '--fixed-strings', text, ETCD]);
  // The key and the start of the value lie side by side.
  const encrypted = `/registry/secrets/${namespace}/${name}.{0,80}k8s:enc:secretbox:v1:key-`;
  expect({
    note: await has(NOTE),
    password: await has(PASSWORD),
    base64: await has(SAID),
    encrypted: await isFound(['grep', '--recursive', '--quiet', '--text', '--perl-regexp', `(?s)${encrypted}`, ETCD]),
  }).toEqual({ note: true, password: false, base64: false, encrypted: true });
}

/**
 * Names of the keys that the Secrets of an etcd are encrypted with, `plain` for none.
 * @param get runs etcdctl's `get` with these options, and resolves to what it says
 */
export async function keysOfSecrets(get: (options: string[]) => Promise<string>): Promise<string[]> {
  const { kvs } = JSON.parse(await get(['/registry/secrets/', '--prefix', '--write-out=json'])) as {
    kvs: { value: string }[];
  };
  const keyOf = ({ value }: { value: string }) =>
    /^k8s:enc:secretbox:v1:([^:]+):/.exec(Buffer.from(value, 'base64').toString('latin1'))?.[1] ?? 'plain';
  return [...new Set(kvs.map(keyOf))];
}

const ETCD = '/var/lib/etcd/member';
