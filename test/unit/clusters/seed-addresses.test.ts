import { afterEach, expect, it } from 'vitest';
import { LABELS } from '../../../operator/api/group.ts';
import { SeedAccess } from '../../../operator/clusters/seed-access.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { silent } from '../../../operator/kube/log.ts';
import type { WatchEvent } from '../../../operator/kube/requests/watch.ts';
import type { KubeObject, Resource } from '../../../operator/kube/resources.ts';
import { partOf } from '../../kit/builders/partial.ts';

let version = 1;
const node = (name: string, addresses: string[], more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, uid: name, resourceVersion: String(++version) },
  status: { addresses: addresses.map((address) => ({ type: 'InternalIP', address })), ...more },
});
/** Of a shoot, named as its policy. */
const policy = (name: string, except?: string[]) => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: {
    name,
    namespace: name,
    uid: name,
    resourceVersion: '1',
    labels: { [LABELS.shoot]: name, [LABELS.shootNamespace]: 'team' },
  },
  spec: { egress: [{ to: [except ? { ipBlock: { cidr: '0.0.0.0/0', except } } : { podSelector: {} }] }] },
});

/** A seed at api.example.com with one node, and two shoots: the machines of one are its pods. */
async function openSeed() {
  const held: Record<string, KubeObject[]> = {
    nodes: [node('one', ['10.9.0.1', 'one.example.com'])],
    endpointslices: [
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name: 'kubernetes', namespace: 'default', resourceVersion: '1' },
        endpoints: [{ addresses: ['203.0.113.9'] }],
      },
    ],
    networkpolicies: [policy('in-seed', ['10.9.0.1/32']), policy('in-cloud')],
  };
  const watches = new Map<string, (event: WatchEvent<KubeObject>) => void>();
  const watch = async (
    { plural }: Resource,
    { signal, namespace }: { signal: AbortSignal; namespace?: string },
    tell: (event: WatchEvent<KubeObject>) => void,
  ): Promise<void> => {
    if (plural === 'endpointslices') expect(namespace).toBe('default');
    watches.set(plural, tell);
    for (const object of held[plural] ?? []) tell({ type: 'ADDED', object });
    const annotations = { 'k8s.io/initial-events-end': 'true' };
    const metadata = { name: '', resourceVersion: String(version), annotations };
    tell({ type: 'BOOKMARK', object: { apiVersion: 'v1', kind: '', metadata } });
    await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
  };
  const told: string[] = [];
  const client = partOf<KubeClient>({ server: 'https://api.example.com:6443', watch });
  const resolve = async () => ['192.0.2.5', '2001:db8::5'];
  const seed = new SeedAccess({ name: 'far', identity: 'one', client, resolve }, silent, (key) => told.push(key));
  await seed.start(AbortSignal.timeout(5000));
  opened.push(seed);
  told.length = 0;
  return {
    seed,
    told,
    tell: (type: 'ADDED' | 'MODIFIED', object: KubeObject) => watches.get('nodes')!({ type, object }),
  };
}

const opened: SeedAccess[] = [];
afterEach(() => Promise.all(opened.splice(0).map((seed) => seed.stop())));

it('an open seed knows the addresses of its nodes and API servers', async () => {
  const { seed } = await openSeed();
  expect(seed.addresses.nodes()).toEqual(['10.9.0.1', 'one.example.com']);
  // Of the name in the kubeconfig, too, by the time that the seed is open.
  expect(seed.addresses.apiServers()).toEqual(['192.0.2.5', '2001:db8::5', '203.0.113.9']);
});

it('a new node reconciles the shoots whose policies name addresses; a heartbeat reconciles none', async () => {
  const { seed, told, tell } = await openSeed();
  tell('MODIFIED', node('one', ['10.9.0.1', 'one.example.com'], { conditions: [{ type: 'Ready' }] }));
  expect(told).toEqual([]);
  tell('ADDED', node('two', ['10.9.0.2']));
  expect(told).toEqual(['team/in-seed']);
  tell('MODIFIED', node('two', ['10.9.0.3']));
  expect(told).toEqual(['team/in-seed', 'team/in-seed']);
  expect(seed.addresses.nodes()).toEqual(['10.9.0.1', 'one.example.com', '10.9.0.3']);
});
