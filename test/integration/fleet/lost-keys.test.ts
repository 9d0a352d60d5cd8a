import { afterAll, beforeAll, expect, it } from 'vitest';
import { findCondition } from '../../../operator/api/conditions.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { NAMESPACES, SECRETS, type Secret, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { RecordedGarden } from '../../kit/recorded-garden.ts';

let garden: RecordedGarden;
let client: KubeClient;
beforeAll(async () => {
  garden = await RecordedGarden.start();
  client = garden.server.client;
});
afterAll(() => garden?.stop());

const keysOf = (name: string) => garden.secrets.get(`shoot--default--${name}/pki`);
const deleteKeys = (name: string) => client.delete(SECRETS, 'pki', `shoot--default--${name}`);
const kept = (name: string) => findCondition(garden.cluster(name)?.status?.conditions, 'KeysKept');

it('an operator restores keys deleted in the seed from its memory', async () => {
  await garden.made('remembered');
  const before = keysOf('remembered')!;
  await deleteKeys('remembered');
  await garden.until('the keys to be back', () => {
    const now = keysOf('remembered');
    return now !== undefined && now.metadata.uid !== before.metadata.uid;
  });
  expect(keysOf('remembered')!.data).toEqual(before.data);
});

it('an operator restores keys deleted while an operation waits, before the operation ends', async () => {
  await garden.profileWithSlowMachines('slow', '30m');
  await garden.ask('waiting', 'slow');
  const operation = () => garden.shoots.get('default/waiting')?.status?.lastOperation;
  await garden.until('the operation to wait for machines', () => /machines/.test(operation()?.description ?? ''));
  const before = keysOf('waiting')!;
  await deleteKeys('waiting');
  await garden.until(
    'the keys to be back',
    () => (keysOf('waiting')?.metadata.uid ?? before.metadata.uid) !== before.metadata.uid,
  );
  expect(keysOf('waiting')!.data).toEqual(before.data);
  expect(operation()?.state).toBe('Processing');
});

it('keys lost while no operator ran are not created anew: a condition reports them until their restore', async () => {
  await garden.made('lost');
  const before = keysOf('lost')!;
  await garden.stopOperator();
  await deleteKeys('lost');
  await garden.startOperator();
  await garden.until('the loss to be told', () => kept('lost')?.status === 'False');
  expect(kept('lost')?.message).toMatch(/Restore Secret shoot--default--lost\/pki .* from a backup/);
  expect(await client.getOrUndefined(SECRETS, 'pki', 'shoot--default--lost')).toBeUndefined();
  const { apiVersion, kind, type, data } = before as Secret & { apiVersion: string; kind: string };
  // Without its labels, as who copies its data by hand brings it.
  await client.create({ apiVersion, kind, type, data, metadata: { name: 'pki', namespace: 'shoot--default--lost' } });
  await garden.until('the loss to be over', () => kept('lost') === undefined);
  expect(keysOf('lost')!.data).toEqual(before.data);
});

it('a cluster whose keys are lost can be deleted', async () => {
  await garden.made('doomed');
  await garden.stopOperator();
  await deleteKeys('doomed');
  await garden.startOperator();
  await garden.until('the loss to be told', () => kept('doomed')?.status === 'False');
  await client.delete(WORKERCLUSTERS, 'doomed', 'default');
  await garden.until('the cluster to be gone', () => !garden.cluster('doomed') && !garden.shoots.get('default/doomed'));
  const space = await client.getOrUndefined(NAMESPACES, 'shoot--default--doomed');
  expect(space === undefined || space.metadata.deletionTimestamp !== undefined).toBe(true);
});
