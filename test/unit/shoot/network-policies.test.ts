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
const around: Surroundings = { networks, vni: 0x010203, hasMachines: true, imageMirror: `http://${NODE}:5000` };

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
const OPERATOR = '10.160.9.1';
const STRANGER = '10.160.9.2';

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

const tenant = (name: string, more: { machinesOutside?: boolean } = {}) => ({
  namespace: `shoot--${name}`,
  shoot: { name, namespace: name },
  ...more,
});

/** Two tenants in a seed, with the policies of each, and what else is in it. */
const chains = networkPolicyChains(
  {
    pods: [
      ...podsOf('shoot--a', a),
      ...podsOf('shoot--b', b),
      seenPod({ 'app.kubernetes.io/name': 'coppice' }, 'coppice-system', OPERATOR),
      seenPod({ app: 'stranger' }, 'default', STRANGER),
    ],
    namespaces: [
      { metadata: { name: 'shoot--a', labels: { [LABELS.shoot]: 'a' } } },
      { metadata: { name: 'shoot--b', labels: { [LABELS.shoot]: 'b' } } },
      { metadata: { name: 'coppice-system' } },
      { metadata: { name: 'default' } },
    ] as KubeObject[],
    policies: [...networkPolicies(tenant('a'), around), ...networkPolicies(tenant('b'), { ...around, vni: 0x040506 })],
  },
  networks,
);
const may = (from: string, to: string, port: number, protocol = 'tcp') => passes(chains, { from, to, port, protocol });

describe("policies of a shoot's namespace", () => {
  it('let etcd be called by its own API server, its peers and the operator alone', () => {
    expect(may(a.apiServer, a.etcd, 2379)).toBe(true);
    expect(may(a.etcdToo, a.etcd, 2380)).toBe(true);
    for (const from of [HOST, OPERATOR]) expect(may(from, a.etcd, 2379)).toBe(true);
    for (const from of [a.controllerManager, a.scheduler, a.machine, STRANGER, ...Object.values(b)])
      for (const port of [2379, 2380, 2381]) expect([from, port, may(from, a.etcd, port)]).toEqual([from, port, false]);
    expect(may(a.apiServer, a.etcd, 2380)).toBe(false);
  });

  it('let everybody call API servers, as by their Services, and at no other port', () => {
    for (const from of [a.controllerManager, a.scheduler, a.machine, STRANGER, OPERATOR, HOST, b.machine, '192.0.2.1'])
      expect([from, may(from, a.apiServer, 6443)]).toEqual([from, true]);
    for (const from of [a.machine, b.machine, STRANGER]) expect(may(from, a.apiServer, 8133)).toBe(false);
  });

  it('keep every pod of another tenant away from all else, both ways', () => {
    const machines = ['machine', 'machineToo', 'controlPlaneMachine'];
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
          // As everybody may, and nothing but an API server listens there.
          const isAllowed = port === 6443 && machines.includes(from);
          expect([from, to, port, may(source, target, port, protocol)]).toEqual([from, to, port, isAllowed]);
        }
  });

  it('let a control plane out to its own namespace alone', () => {
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

  it('let machines out to the world, names and images, and to nothing of the seed', () => {
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

  it('keep frames of the cluster network among machines and API servers of one cluster', () => {
    for (const to of [a.machineToo, a.apiServer, '239.1.2.3']) expect(may(a.machine, to, 4789, 'udp')).toBe(true);
    for (const to of [b.machine, b.apiServer, '239.4.5.6', '224.0.0.1'])
      expect(may(a.machine, to, 4789, 'udp')).toBe(false);
  });

  it('are one object where no machine is in the seed, with the port of the tunnel where machines come by it', () => {
    const [policy, ...more] = networkPolicies(tenant('a', { machinesOutside: true }), {
      ...around,
      hasMachines: false,
    });
    expect(more).toEqual([]);
    expect(policy?.spec.ingress?.[0]).toEqual({ ports: [6443, 8132].map((port) => ({ protocol: 'TCP', port })) });
    expect(JSON.stringify(policy)).not.toContain('4789');
  });
});
