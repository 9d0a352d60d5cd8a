import { describe, expect, it } from 'vitest';
import { LABELS, ROLES } from '../../../operator/api/group.ts';
import { networkPolicyChains } from '../../../operator/garden/network-policies/rules.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';
import { networkPolicies, type Surroundings } from '../../../operator/shoot/network-policies.ts';
import { passes, seenPod } from '../../kit/packets.ts';

const networks = { pods: '10.160.0.0/17', services: '10.161.0.0/16', nodes: '10.160.128.0/24' };
const NODE = '10.160.128.2';
const HOST = '10.160.128.1';
const API_SERVER_OF_SEED = 26443;
const around: Surroundings = {
  networks,
  nodeAddresses: [NODE],
  apiServers: [NODE],
  operatorNamespace: 'coppice-system',
  vni: 0x010203,
  hasMachines: true,
  imageMirror: `http://${NODE}:5000`,
};

/** Pods of a tenant, by what they are. `third`: octet of their addresses. */
const addresses = (third: number) => ({
  apiServer: `10.160.${third}.1`,
  etcd: `10.160.${third}.2`,
  etcdToo: `10.160.${third}.3`,
  controllerManager: `10.160.${third}.4`,
  scheduler: `10.160.${third}.5`,
  machine: `10.160.${third}.6`,
  machineToo: `10.160.${third}.7`,
  controlPlaneMachine: `10.160.${third}.8`,
});
const a = addresses(1);
const b = addresses(2);
/** Another cluster of a's tenant. */
const a2 = addresses(3);
const OPERATOR = '10.160.9.1';
const STRANGER = '10.160.9.2';
/** A tenant's pod in the garden that is its own seed, with labels as it likes. */
const PRETENDER = '10.160.9.3';

function podsOf(namespace: string, at: typeof a) {
  const component = (app: string, address: string) =>
    seenPod({ app, [LABELS.role]: ROLES.controlPlane }, namespace, address);
  const machine = (role: string, address: string) => seenPod({ [LABELS.role]: role }, namespace, address);
  return [
    component('kube-apiserver', at.apiServer),
    component('etcd-main', at.etcd),
    component('etcd-main', at.etcdToo),
    component('kube-controller-manager', at.controllerManager),
    component('kube-scheduler', at.scheduler),
    machine(ROLES.machine, at.machine),
    machine(ROLES.machine, at.machineToo),
    machine(ROLES.controlPlaneMachine, at.controlPlaneMachine),
  ];
}

/** Of the rules: with Services elsewhere, so that it is the policies that keep anybody from those of the seed. */
const ranges = { ...networks, services: '10.250.0.0/16' };

const tenant = (name: string, more: { machinesOutside?: boolean } = {}, of = name) => ({
  namespace: `shoot--${name}`,
  shoot: { name, namespace: of },
  ...more,
});
const shootNamespace = (name: string, of = name): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: `shoot--${name}`, labels: { [LABELS.shoot]: name, [LABELS.shootNamespace]: of } },
});

/** Two tenants in a seed, one with two clusters, with the policies of each, and what else is in it. */
const chains = networkPolicyChains(
  {
    pods: [
      ...podsOf('shoot--a', a),
      ...podsOf('shoot--b', b),
      ...podsOf('shoot--a2', a2),
      seenPod({ 'app.kubernetes.io/name': 'coppice' }, 'coppice-system', OPERATOR),
      seenPod({ app: 'stranger' }, 'default', STRANGER),
      seenPod({ 'app.kubernetes.io/name': 'coppice' }, 'default', PRETENDER),
    ],
    namespaces: [
      shootNamespace('a'),
      shootNamespace('b'),
      shootNamespace('a2', 'a'),
      { metadata: { name: 'coppice-system', labels: { 'kubernetes.io/metadata.name': 'coppice-system' } } },
      { metadata: { name: 'default' } },
    ] as KubeObject[],
    policies: [
      ...networkPolicies(tenant('a'), around),
      ...networkPolicies(tenant('b'), { ...around, vni: 0x040506 }),
      ...networkPolicies(tenant('a2', {}, 'a'), { ...around, vni: 0x070809 }),
    ],
  },
  ranges,
);

/** Where a machine of a shoot gets to outside of its namespace, with such surroundings. */
const mayMachine = (more: Partial<Surroundings>) => {
  const pods = podsOf('shoot--a', a);
  const policies = networkPolicies(tenant('a'), { ...around, ...more });
  const alone = networkPolicyChains({ pods, namespaces: [shootNamespace('a')], policies }, ranges);
  return (to: string, port: number) => passes(alone, { from: a.machine, to, port, protocol: 'tcp' });
};

const may = (from: string, to: string, port: number, protocol = 'tcp') => passes(chains, { from, to, port, protocol });

describe("the network policies of a shoot's namespace", () => {
  it('permit connections to etcd from its API server, peers and the operator only', () => {
    expect(may(a.apiServer, a.etcd, 2379)).toBe(true);
    expect(may(a.etcdToo, a.etcd, 2380)).toBe(true);
    for (const from of [HOST, OPERATOR]) for (const port of [2379, 2382]) expect(may(from, a.etcd, port)).toBe(true);
    for (const from of [a.controllerManager, a.scheduler, a.machine, STRANGER, PRETENDER, ...Object.values(b)])
      for (const port of [2379, 2380, 2381, 2382])
        expect([from, port, may(from, a.etcd, port)]).toEqual([from, port, false]);
    for (const port of [2380, 2382]) expect(may(a.apiServer, a.etcd, port)).toBe(false);
  });

  it('permit connections to API servers like their Services, at no other port', () => {
    // The first address of a node's range is how some networks have it call pods of other nodes, also for others.
    const byNode = '10.160.5.0';
    for (const from of [a.controllerManager, a.scheduler, a.machine, STRANGER, OPERATOR, HOST, byNode, '192.0.2.1'])
      expect([from, may(from, a.apiServer, 6443)]).toEqual([from, true]);
    for (const from of [a.machine, b.machine, STRANGER]) expect(may(from, a.apiServer, 8133)).toBe(false);
  });

  it("permit machines to reach API servers of the same tenant, for example a hub's, and nothing else there", () => {
    for (const to of [a2.apiServer, a2.controlPlaneMachine])
      expect([to, may(a.machine, to, 6443), may(a.machine, to, 443)]).toEqual([to, true, false]);
    for (const to of [a2.etcd, a2.scheduler, a2.machine]) expect([to, may(a.machine, to, 6443)]).toEqual([to, false]);
    expect(may(a.controllerManager, a2.apiServer, 6443)).toBe(false);
  });

  it('separate pods of other tenants in both directions', () => {
    for (const [from, source] of Object.entries(b))
      for (const [to, target] of Object.entries(a))
        for (const [port, protocol] of [
          [443, 'tcp'],
          [2379, 'tcp'],
          [2380, 'tcp'],
          [4789, 'udp'],
          [6443, 'tcp'],
          [10250, 'tcp'],
          [30000, 'tcp'],
        ] as const) {
          expect([from, to, port, may(source, target, port, protocol)]).toEqual([from, to, port, false]);
          expect([to, from, port, may(target, source, port, protocol)]).toEqual([to, from, port, false]);
        }
  });

  it("restrict a control plane's egress to its own namespace", () => {
    for (const from of [a.apiServer, a.etcd, a.controllerManager, a.scheduler])
      for (const [to, port] of [
        [NODE, API_SERVER_OF_SEED],
        [NODE, 53],
        ['192.0.2.1', 443],
        ['169.254.169.254', 80],
        [STRANGER, 80],
      ] as const)
        expect([from, to, may(from, to, port)]).toEqual([from, to, false]);
    expect(may(a.apiServer, a.machine, 10250)).toBe(true);
    expect(may(a.apiServer, '239.1.2.3', 4789, 'udp')).toBe(true);
  });

  it('permit machines the internet, DNS and images, and nothing of the seed', () => {
    for (const [to, port, protocol] of [
      ['192.0.2.1', 443, 'tcp'],
      ['10.0.0.1', 443, 'tcp'],
      [NODE, 53, 'udp'],
      [NODE, 53, 'tcp'],
      [NODE, 5000, 'tcp'],
    ] as const)
      expect([to, port, may(a.machine, to, port, protocol)]).toEqual([to, port, true]);
    for (const [to, port] of [
      [NODE, API_SERVER_OF_SEED],
      [NODE, 10250],
      [HOST, 22],
      ['10.161.0.1', 443],
      ['169.254.169.254', 80],
      ['168.63.129.16', 80],
      [STRANGER, 80],
    ] as const)
      expect([to, port, may(a.machine, to, port)]).toEqual([to, port, false]);
  });

  it("block the seed's blocked ranges for machines, including IPv6 and all addresses", () => {
    const may = mayMachine({ networks: { ...networks, blockCIDRs: ['198.51.100.7/24', 'fd00::/8'] } });
    expect([may('198.51.100.1', 443), may('192.0.2.1', 443), may(a.apiServer, 6443)]).toEqual([false, true, true]);
    const nowhere = mayMachine({ networks: { ...networks, blockCIDRs: ['0.0.0.0/0'] } });
    expect([nowhere('192.0.2.1', 443), nowhere(a.apiServer, 6443)]).toEqual([false, true]);
  });

  it('block observed nodes and API servers for machines, where the seed names no node range', () => {
    const { nodes: _, ...unsaid } = networks;
    const nodeAddresses = [NODE, '203.0.113.4', 'node-1', 'fd00::1'];
    const may = mayMachine({ networks: unsaid, nodeAddresses, apiServers: ['203.0.113.9', 'api.example.com'] });
    for (const [to, port, allowed] of [
      [NODE, API_SERVER_OF_SEED, false],
      [NODE, 10250, false],
      [NODE, 53, true],
      [NODE, 5000, true],
      ['203.0.113.4', 10250, false],
      ['203.0.113.9', 443, false],
      ['203.0.113.9', 53, false],
      ['203.0.113.5', 443, true],
    ] as const)
      expect([to, port, may(to, port)]).toEqual([to, port, allowed]);
  });

  it("block the seed's API servers outside the node range for machines", () => {
    const may = mayMachine({ nodeAddresses: ['203.0.113.4'], apiServers: ['203.0.113.9'] });
    for (const to of ['203.0.113.4', '203.0.113.9']) expect([to, may(to, 443)]).toEqual([to, false]);
  });

  it('stay short and equal for any number and order of nodes', () => {
    const { nodes: _, ...unsaid } = networks;
    const nodeAddresses = Array.from({ length: 1000 }, (__, index) => `10.9.${index >> 6}.${(index & 63) * 3}`);
    const made = (addresses: string[]) =>
      networkPolicies(tenant('a'), { ...around, networks: unsaid, nodeAddresses: addresses });
    const policies = made(nodeAddresses);
    expect(made(nodeAddresses.toReversed())).toEqual(policies);
    expect(policies[1]!.spec.egress!.flatMap(({ to }) => to?.[0]?.ipBlock?.except ?? []).length).toBeLessThan(150);
    const may = mayMachine({ networks: unsaid, nodeAddresses });
    expect(nodeAddresses.filter((to, index) => index % 9 === 0 && may(to, 10250))).toEqual([]);
    expect([may('10.8.0.1', 443), may('10.10.0.1', 443)]).toEqual([true, true]);
  });

  it('keep frames of the cluster network within one cluster', () => {
    for (const to of [a.machineToo, a.apiServer, '239.1.2.3']) expect(may(a.machine, to, 4789, 'udp')).toBe(true);
    for (const to of [b.machine, b.apiServer, '239.4.5.6', '224.0.0.1'])
      expect(may(a.machine, to, 4789, 'udp')).toBe(false);
  });

  it("are one object without machines in the seed, with the tunnel's port where it is used", () => {
    const [policy, ...more] = networkPolicies(tenant('a', { machinesOutside: true }), {
      ...around,
      hasMachines: false,
    });
    expect(more).toEqual([]);
    expect(policy?.spec.ingress?.[0]).toEqual({ ports: [6443, 8132].map((port) => ({ protocol: 'TCP', port })) });
    expect(JSON.stringify(policy)).not.toContain('4789');
  });
});
