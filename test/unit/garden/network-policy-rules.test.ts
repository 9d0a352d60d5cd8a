import { expect, it } from 'vitest';
import { chainsShown, networkPolicyChains, restoreInput } from '../../../operator/garden/network-policies/rules.ts';
import type { NetworkPolicy } from '../../../operator/kube/network-policy.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';
import { passes, seenPod } from '../../kit/packets.ts';

const RANGES = { pods: '10.160.0.0/17', nodes: '10.160.128.0/24', services: '10.170.0.0/16' };

const policy = (name: string, namespace: string, spec: NetworkPolicy['spec']): NetworkPolicy => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name, namespace },
  spec,
});
const namespaces = ['one', 'two'].map(
  (name) => ({ metadata: { name, labels: { team: name } } }) as unknown as KubeObject,
);

const etcd = seenPod({ app: 'etcd' }, 'one', '10.160.0.1');
const api = seenPod({ app: 'api' }, 'one', '10.160.0.2', { ports: [{ name: 'https', containerPort: 6443 }] });
const other = seenPod({ app: 'other' }, 'two', '10.160.0.3');
const pods = [etcd, api, other];
const [E, A, O] = pods.map(({ status }) => status!.podIP!) as [string, string, string];
const chainsOf = (...policies: NetworkPolicy[]) => networkPolicyChains({ pods, namespaces, policies }, RANGES);

it('network policy rules leave unselected pods alone', () => {
  const chains = chainsOf(policy('deny', 'one', { podSelector: { matchLabels: { app: 'etcd' } } }));
  expect(passes(chains, { from: O, to: A })).toBe(true);
  expect(passes(chains, { from: O, to: E })).toBe(false);
  // It is about who calls it, and not about whom it calls.
  expect(passes(chains, { from: E, to: O })).toBe(true);
});

it('network policy rules permit what any policy names by pod, namespace, port and range', () => {
  const chains = chainsOf(
    policy('deny', 'one', { podSelector: {}, policyTypes: ['Ingress', 'Egress'] }),
    policy('api', 'one', {
      podSelector: { matchLabels: { app: 'api' } },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [{ from: [{ namespaceSelector: { matchLabels: { team: 'two' } } }], ports: [{ port: 'https' }] }],
      egress: [
        { to: [{ podSelector: { matchLabels: { app: 'etcd' } } }], ports: [{ port: 2379, endPort: 2380 }] },
        { to: [{ ipBlock: { cidr: '0.0.0.0/0', except: ['10.0.0.0/8', '169.254.0.0/16'] } }] },
      ],
    }),
    policy('etcd', 'one', {
      podSelector: { matchLabels: { app: 'etcd' } },
      ingress: [{ from: [{ podSelector: { matchExpressions: [{ key: 'app', operator: 'In', values: ['api'] }] } }] }],
    }),
  );
  expect(passes(chains, { from: O, to: A, port: 6443 })).toBe(true);
  expect(passes(chains, { from: O, to: A, port: 6444 })).toBe(false);
  expect(passes(chains, { from: O, to: A, port: 6443, protocol: 'udp' })).toBe(false);
  expect(passes(chains, { from: A, to: E, port: 2379 })).toBe(true);
  expect(passes(chains, { from: A, to: E, port: 2380 })).toBe(true);
  expect(passes(chains, { from: A, to: E, port: 2381 })).toBe(false);
  expect(passes(chains, { from: O, to: E, port: 2379 })).toBe(false);
  expect(passes(chains, { from: A, to: O })).toBe(false);
  expect(passes(chains, { from: A, to: '169.254.169.254' })).toBe(false);
  for (const to of ['9.255.255.255', '11.0.0.0', '169.253.255.255', '169.255.0.0', '255.255.255.255', '0.0.0.1'])
    expect([to, passes(chains, { from: A, to })]).toEqual([to, true]);
  for (const to of ['10.0.0.0', '10.255.255.255', '169.254.0.0', '169.254.255.255'])
    expect([to, passes(chains, { from: A, to })]).toEqual([to, false]);
  expect(passes(chains, { from: E, to: '192.0.2.1' })).toBe(false);
});

it('network policy rules let the node and host reach all pods, so that probes work', () => {
  const chains = chainsOf(policy('deny', 'one', { podSelector: {}, policyTypes: ['Ingress', 'Egress'] }));
  expect(passes(chains, { from: '10.160.128.1', to: E })).toBe(true);
  // And not the other way round: the seed's API server is there.
  expect(passes(chains, { from: E, to: '10.160.128.2' })).toBe(false);
});

it('network policy rules refuse an untranslated Service address, so that clients retry', () => {
  const chains = chainsOf();
  for (const from of [E, '10.160.128.1'])
    for (const protocol of ['tcp', 'udp'])
      expect([from, protocol, passes(chains, { from, to: '10.170.3.4', protocol })]).toEqual([from, protocol, false]);
});

it('network policy rules drop late packets, so that live connections survive', () => {
  const [, second] = chainsOf(policy('deny', 'one', { podSelector: {} })).get('COPPICE-NETPOL')!;
  expect(second).toBe('-m conntrack --ctstate INVALID -j DROP');
});

it('network policy rules infer the types of a policy of an older client', () => {
  const [one] = [policy('egress', 'one', { podSelector: {}, egress: [] })];
  const chains = chainsOf(one!);
  expect(passes(chains, { from: E, to: O })).toBe(false);
  expect(passes(chains, { from: O, to: E })).toBe(false);
});

it('network policy rules forget the address of an ended pod, which may be reused', () => {
  const ended = seenPod({ app: 'job' }, 'one', O, { phase: 'Succeeded' });
  const policies = [policy('deny', 'one', { podSelector: {} })];
  expect(passes(networkPolicyChains({ pods: [ended], namespaces, policies }, RANGES), { from: A, to: O })).toBe(true);
});

it('network policy chains have valid names, shared by pods of the same policies', () => {
  const chains = chainsOf(policy('deny', 'one', { podSelector: {} }));
  expect([...chains.keys()].filter((name) => name.length > 28)).toEqual([]);
  expect([...chains.keys()].filter((name) => name.startsWith('COPPICE-NP-'))).toHaveLength(1);
});

it('restoreInput contains changes only, and is undefined without any', () => {
  const before = chainsOf(policy('deny', 'one', { podSelector: {} }));
  expect(restoreInput(before, before)).toBeUndefined();
  const [gone] = [...before.keys()].filter((name) => name.startsWith('COPPICE-NP-'));
  const input = restoreInput(before, chainsOf())!;
  expect(input).toContain(`-X ${gone}`);
  expect(input).not.toContain('--ctstate');
  // What an earlier process left is written anew, whatever is in it.
  const left = new Map(
    chainsShown('-P INPUT ACCEPT\n-N COPPICE-NETPOL\n-N COPPICE-NP-I-1\n-N KUBE-X\n').map((name) => [name, undefined]),
  );
  const anew = restoreInput(left, before)!;
  expect(anew).toContain('-X COPPICE-NP-I-1');
  expect(anew).toContain('--ctstate');
  expect(anew).not.toContain('KUBE-X');
});
