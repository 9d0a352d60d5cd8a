import { beforeEach, describe, expect, it } from 'vitest';
import type { Shoot } from '../../../operator/api/shoot.ts';
import { encryptionWanted } from '../../../operator/controllers/shoot/hosted/encryption.ts';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import { GARDEN_ANNOTATION } from '../../../operator/controllers/shoot/ownership.ts';
import { providerContext } from '../../../operator/controllers/shoot/provider-context.ts';
import { keepKeys, restoreKeys } from '../../../operator/controllers/shoot/stored-keys.ts';
import { issueCertificates } from '../../../operator/controllers/shoot/tasks/issue-certificates.ts';
import { PVCS, SECRETS, type Secret } from '../../../operator/kube/resources.ts';
import { etcdClaimName, etcdSecret } from '../../../operator/shoot/etcd.ts';
import { kubeAPIServer } from '../../../operator/shoot/kube-apiserver.ts';
import { PKI_SECRET, pkiParameters } from '../../../operator/shoot/pki.ts';
import { controlPlaneLabels } from '../../../operator/shoot/values.ts';
import { buildShoot } from '../../kit/builders/objects.ts';
import { MemoryApiServer } from '../../kit/memory-api-server.ts';
import { type OperatorInSeed, operatorInSeed } from '../../kit/seed-in-memory.ts';
import { controlPlane, NOW } from '../shoot/values.ts';

const values = controlPlane();
const NS = values.namespace;
const signal = new AbortController().signal;
const shoot = buildShoot({ metadata: { ...values.shoot, uid: 's1' } });
const served = { ...shoot, status: { lastOperation: { type: 'Reconcile', state: 'Succeeded' } } } as Shoot;

let seed: MemoryApiServer;
let operator: OperatorInSeed;

beforeEach(() => {
  seed = new MemoryApiServer();
  operator = operatorInSeed(seed, () => NOW);
});

async function issue(of: Shoot, by = operator, more: Partial<Operation> = {}): Promise<Operation> {
  const op = by.operation(of, more);
  await issueCertificates(op, pkiParameters(values), signal, (pki) => encryptionWanted(op, pki));
  return op;
}

const stored = () => seed.find<Secret>(SECRETS, PKI_SECRET, NS)?.data;
const deleteKeys = () => seed.delete(SECRETS, PKI_SECRET, NS);
/** Somebody edits the Secret. */
function change(data: Record<string, string>): void {
  const secret = seed.find<Secret>(SECRETS, PKI_SECRET, NS)!;
  seed.put({ ...secret, data });
}
const without = (...files: string[]) =>
  Object.fromEntries(Object.entries(stored()!).filter(([file]) => !files.includes(file)));

it('an operator with keys in memory restores a deleted Secret, and reports it', async () => {
  await issue(shoot);
  const before = stored();
  await deleteKeys();
  await issue(served);
  expect(stored()).toEqual(before);
  expect(operator.events).toEqual(['Warning KeysRestored']);
});

it('a restarted operator generates no new keys for a cluster that has served, reports it, and continues once they are restored', async () => {
  await issue(shoot);
  const before = seed.find<Secret>(SECRETS, PKI_SECRET, NS)!;
  await deleteKeys();
  const restarted = operatorInSeed(seed, () => NOW);
  await expect(issue(served, restarted)).rejects.toThrow(/has lost ca, ca-etcd, ca-front-proxy, sa, and the cluster/);
  expect(restarted.state.keysLost).toMatch(/Restore Secret .*pki .* delete it\.$/);
  expect(stored()).toBeUndefined();
  seed.put(before);
  await issue(served, restarted);
  expect(stored()).toEqual(before.data);
  expect(restarted.state.keysLost).toBeUndefined();
});

it.each<[string, (op: Operation) => void]>([
  ["etcd's Secret", (op) => seed.put(etcdSecret(values, op.pki))],
  [
    "etcd's Secret without its labels",
    (op) => {
      const { labels: _, ...metadata } = etcdSecret(values, op.pki).metadata;
      seed.put({ ...etcdSecret(values, op.pki), metadata });
    },
  ],
  [
    "a volume of etcd's",
    () => {
      const metadata = { name: etcdClaimName(0), namespace: NS };
      seed.put({ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata });
    },
  ],
])('%s in the seed shows that keys were used, even where the Shoot has no status', async (_, leave) => {
  leave(await issue(shoot));
  await deleteKeys();
  await expect(
    issue(
      shoot,
      operatorInSeed(seed, () => NOW),
    ),
  ).rejects.toThrow(/makes no other keys/);
  expect(stored()).toBeUndefined();
});

it('a cluster without any resources gets its first keys', async () => {
  seed.put({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: etcdClaimName(0), namespace: 'other' },
  });
  await issue(shoot);
  expect(Object.keys(stored()!)).toContain('ca.key');
  expect(seed.find(PVCS, etcdClaimName(0), 'other')).toBeDefined();
});

it.each([
  ['an authority', ['ca-etcd.key'], /lost ca-etcd,/],
  ['the key of ServiceAccount tokens', ['sa.key'], /lost sa,/],
  ['the keys of Secrets', ['secrets-encryption.json'], /lost secrets-encryption.json,/],
])('%s that was taken out of the Secret is put back, or not made anew', async (_, files, told) => {
  const op = await issue(shoot);
  for (const object of kubeAPIServer(values, op.pki)) seed.put(object);
  const before = stored();
  change(without(...files));
  await issue(served);
  expect(stored()).toEqual(before);
  change(without(...files));
  await expect(
    issue(
      served,
      operatorInSeed(seed, () => NOW),
    ),
  ).rejects.toThrow(told);
  expect(stored()).toEqual(without(...files));
});

/** What a Secret of another cluster has of these files. */
async function foreign(...files: string[]): Promise<Record<string, string>> {
  const other = new MemoryApiServer();
  await issue(
    shoot,
    operatorInSeed(other, () => NOW),
  );
  const { data = {} } = other.find<Secret>(SECRETS, PKI_SECRET, NS)!;
  return Object.fromEntries(files.map((file) => [file, data[file]!]));
}

it.each<[string, () => Promise<Record<string, string>>]>([
  ['garbage in place of the key of tokens', async () => ({ 'sa.key': btoa('garbage') })],
  ['an authority of another cluster', () => foreign('ca.crt', 'ca.key')],
  ['the key of tokens of another cluster', () => foreign('sa.key', 'sa.pub')],
  ['the encryption keys of Secrets of another cluster', () => foreign('secrets-encryption.json')],
])('%s is written over by the operator that has the keys in memory, which tells', async (_, replacement) => {
  await issue(shoot);
  const before = stored();
  change({ ...before!, ...(await replacement()) });
  await issue(served);
  expect(stored()).toEqual(before);
  expect(operator.events).toEqual(['Warning KeysRestored']);
});

it('an invalid token key is reported where no operator has the key', async () => {
  await issue(shoot);
  change({ ...stored()!, 'sa.key': btoa('garbage') });
  const damaged = stored();
  const restarted = operatorInSeed(seed, () => NOW);
  await expect(issue(served, restarted)).rejects.toThrow(/has lost sa, and the cluster has served/);
  expect(stored()).toEqual(damaged);
});

it('the public token key is derived from the private key', async () => {
  await issue(shoot);
  const before = stored();
  change({ ...before!, 'sa.pub': btoa('garbage') });
  await issue(
    served,
    operatorInSeed(seed, () => NOW),
  );
  expect(stored()).toEqual(before);
});

it('a CA whose certificate and key do not match is not replaced', async () => {
  await issue(shoot);
  const other = new MemoryApiServer();
  await issue(
    shoot,
    operatorInSeed(other, () => NOW),
  );
  change({ ...stored()!, 'ca.key': other.find<Secret>(SECRETS, PKI_SECRET, NS)!.data!['ca.key']! });
  await expect(
    issue(
      served,
      operatorInSeed(seed, () => NOW),
    ),
  ).rejects.toThrow(/lost ca,/);
});

it('keys of an earlier cluster of the same name are not restored', async () => {
  await issue(shoot);
  const before = stored()!['ca.crt'];
  await deleteKeys();
  await issue({ ...shoot, metadata: { ...shoot.metadata, uid: 's2' } });
  expect(stored()!['ca.crt']).not.toBe(before);
});

it('a sleeping cluster keeps its keys in the same way', async () => {
  await issue(shoot);
  const before = stored();
  await deleteKeys();
  await keepKeys(operator.operation(served), signal);
  expect(stored()).toEqual(before);
  await deleteKeys();
  await expect(keepKeys(operatorInSeed(seed, () => NOW).operation(served), signal)).rejects.toThrow(/makes no other/);
});

describe('while an operation waits', () => {
  const space = ({ garden = 'garden', ...more }: { garden?: string; deletionTimestamp?: string } = {}) => {
    const annotations = { [GARDEN_ANNOTATION]: garden };
    const metadata = { name: NS, labels: controlPlaneLabels(values), annotations, ...more };
    return seed.put({ apiVersion: 'v1', kind: 'Namespace', metadata });
  };

  it.each<[string, () => unknown]>([
    ['a deleted Secret is', deleteKeys],
    ['a deleted authority is', () => change(without('ca.key'))],
    [
      'an authority of another cluster is',
      async () => change({ ...stored()!, ...(await foreign('ca.crt', 'ca.key')) }),
    ],
  ])('%s restored from memory, also for the operation', async (_, lose) => {
    space();
    const waiting = await issue(shoot);
    const before = stored();
    await lose();
    await restoreKeys(waiting, signal);
    expect(stored()).toEqual(before);
    expect(waiting.pki['ca.key']).toBe(atob(before!['ca.key']!));
    expect(operator.events).toEqual(['Warning KeysRestored']);
  });

  it('other encryption keys of Secrets are left to the operation, which may be rotating them', async () => {
    space();
    const waiting = await issue(shoot);
    const rotated = { ...stored()!, ...(await foreign('secrets-encryption.json')) };
    change(rotated);
    await restoreKeys(waiting, signal);
    expect(stored()).toEqual(rotated);
  });

  it('keys are restored from what the server has, if somebody was faster', async () => {
    space();
    const waiting = await issue(shoot);
    const before = seed.find<Secret>(SECRETS, PKI_SECRET, NS)!;
    await deleteKeys();
    let isFirst = true;
    seed.around = (write) => {
      if (isFirst) seed.put(before);
      isFirst = false;
      return write();
    };
    await restoreKeys(waiting, signal);
    expect(stored()).toEqual(before.data);
    expect(operator.events).toEqual([]);
  });

  it.each<[string, () => unknown]>([
    ['a namespace that is being deleted', () => space({ deletionTimestamp: '2026-11-23T00:00:00Z' })],
    ['a namespace of another garden', () => space({ garden: 'other' })],
    ['no namespace', () => {}],
  ])('nothing is written into %s', async (_, give) => {
    const waiting = await issue(shoot);
    give();
    await deleteKeys();
    await restoreKeys(waiting, signal);
    expect(stored()).toBeUndefined();
  });
});

it('a restore that the seed refuses does not cost the keys in memory', async () => {
  await issue(shoot);
  const before = stored();
  await deleteKeys();
  seed.around = () => {
    throw new Error('the seed is away');
  };
  await expect(issue(served)).rejects.toThrow('the seed is away');
  seed.around = (write) => write();
  await issue(served);
  expect(stored()).toEqual(before);
});

it('two operators that give a new cluster keys at once both use those stored first', async () => {
  const other = operatorInSeed(seed, () => NOW);
  const [one, two] = await Promise.all([issue(shoot), issue(shoot, other)]);
  expect(two.pki['ca.key']).toBe(one.pki['ca.key']);
  expect(two.pki['secrets-encryption.json']).toBe(one.pki['secrets-encryption.json']);
  expect(seed.writes).toEqual([`create secrets ${NS}/${PKI_SECRET}`]);
});

it('a machine can be removed from a cluster with partly lost keys', async () => {
  await issue(shoot);
  change(without('ca.crt'));
  const { 'ca.crt': _, ...pki } = { 'ca.crt': '', 'ca.key': 'left' };
  const op = operator.operation(served, { pki, vni: 1, values: { ...values } });
  const context = providerContext(
    op,
    { metadata: { name: 'p' }, spec: {} } as never,
    {
      metadata: { name: 'local' },
      spec: { provider: {} },
    } as never,
  );
  expect(context.clusterCA).toBe('');
});
