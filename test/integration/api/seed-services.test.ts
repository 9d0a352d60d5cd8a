import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { KubeObject } from '../../../operator/api/meta.ts';
import { seedServices } from '../../../operator/api/seed-service-policy.ts';
import { SERVICES } from '../../../operator/kube/resources.ts';
import { readRefusal } from '../../kit/read-refusal.ts';
import { type SharedApiserver, sharedApiserver } from '../../kit/shared-apiserver.ts';

let garden: SharedApiserver;
let spared: string;

const service = (name: string, spec: object = {}, namespace = garden.namespace): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace },
  spec: { ports: [{ port: 6443 }], selector: { app: 'theirs' }, ...spec },
});

const answer = (action: Promise<unknown>) => readRefusal(() => action);
const patch = (name: string, spec: object) =>
  answer(garden.client.mergePatch(SERVICES, name, garden.namespace, { spec }));
const POD_OF_A_CONTROL_PLANE = '10.96.0.7';

beforeAll(async () => {
  garden = await sharedApiserver();
  spared = await garden.newNamespace();
  await garden.client.create(service('before', { externalIPs: ['192.0.2.1', '192.0.2.2'] }));
  for (const manifest of seedServices(JSON.stringify([spared]))) await garden.client.apply(manifest);
  const refused = () =>
    answer(garden.client.create(service('x', { externalIPs: [POD_OF_A_CONTROL_PLANE] }), { dryRun: true }));
  // A new policy is heeded a moment after it was made.
  const deadline = Date.now() + 30_000;
  while ((await refused()) === '' && Date.now() < deadline) await sleep(100);
});
afterAll(async () => {
  for (const { kind, metadata } of seedServices('[]')) {
    const plural = kind.endsWith('Binding') ? 'validatingadmissionpolicybindings' : 'validatingadmissionpolicies';
    await garden?.client.request('DELETE', `/apis/admissionregistration.k8s.io/v1/${plural}/${metadata.name}`);
  }
  await garden?.leave();
});

test('a new Service gets no external IP, and an existing one no further one', async () => {
  const stolen = { externalIPs: [POD_OF_A_CONTROL_PLANE] };
  expect(await answer(garden.client.create(service('thief', stolen)))).toMatch(
    /Service thief may have no new spec\.externalIPs: this cluster hosts control planes/,
  );
  expect(await answer(garden.client.create(service('plain')))).toBe('');
  expect(await answer(garden.client.create(service('empty', { externalIPs: [] })))).toBe('');
  expect(await patch('plain', stolen)).toMatch(/no new spec\.externalIPs/);
  expect(await patch('before', { externalIPs: ['192.0.2.1', POD_OF_A_CONTROL_PLANE] })).toMatch(/no new/);
});

test('a Service with older external IPs can be written, and can drop them', async () => {
  expect(await patch('before', { ports: [{ port: 8080 }] })).toBe('');
  expect(await patch('before', { externalIPs: ['192.0.2.2'] })).toBe('');
  expect(await patch('before', { externalIPs: ['192.0.2.1', '192.0.2.2'] })).toMatch(/no new/);
  expect(await patch('before', { externalIPs: null })).toBe('');
});

test('a namespace on the exemption list may use external IPs', async () => {
  expect(await answer(garden.client.create(service('balancer', { externalIPs: ['192.0.2.3'] }, spared)))).toBe('');
});
