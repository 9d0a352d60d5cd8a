import { describe, expect, it } from 'vitest';
import type { HubSpec } from '../../../operator/api/hub.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import type { OpenCluster } from '../../../operator/clusters/open-clusters.ts';
import {
  isEmptied,
  isSilent,
  isWarm,
  memberEndpointOf,
  whyNotUsable,
} from '../../../operator/controllers/membership/member.ts';
import { plannedCapacity } from '../../../operator/controllers/membership/planned-capacity.ts';
import { clusterProfileHub } from '../../../operator/hubs/cluster-profile.ts';
import type { Member } from '../../../operator/hubs/contract.ts';
import { buildCloudProfile, buildWorkerCluster } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';

const spec: HubSpec = { type: 'ClusterProfile', clusterLabels: { tier: 'burst' } };
const cluster = (more: object = {}) =>
  buildWorkerCluster({
    metadata: { name: 'demo', namespace: 'shop', labels: { team: 'web', 'argocd.argoproj.io/secret-type': 'cluster' } },
    spec: { cloudProvider: 'aws', dataPlaneNodes: 2 },
    status: { provider: 'aws', region: 'eu-central-1', mode: 'Managed', kubernetesVersion: '1.36.3' },
    ...more,
  });
const open = (...nodes: object[]) =>
  partOf<OpenCluster>({
    server: 'https://10.0.0.1',
    answers: true,
    client: {},
    nodes: { list: () => nodes },
    pods: { list: () => [] },
  });
const unhealthy = (type: string, message: string) => ({ type, status: 'False', message });
const node = (ready: boolean, unschedulable = false) => ({
  metadata: { name: 'n' },
  spec: { unschedulable },
  status: { conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
});

it.each([
  ['NotReachable', true],
  ['Hibernated', false],
  ['Waking', false],
])('an API server that is not available for reason %s is silent: %s', (reason, silent) => {
  const condition = { type: 'APIServerAvailable', status: 'False', reason };
  expect(isSilent(cluster({ status: { conditions: [condition] } }))).toBe(silent);
});

it.each([
  ['waits warm', 'burst-warm', isWarm],
  ['is emptied', 'burst-emptying', isEmptied],
])('a cluster %s as long as it is its policy’s, and is open when it was orphaned', (_, label, isClosed) => {
  const labels = { [`multi-cluster.demo.io/${label}`]: 'true', 'multi-cluster.demo.io/burst-policy': 'peak' };
  const ownerReferences = [
    { apiVersion: 'multi-cluster.demo.io/v1alpha1', kind: 'BurstPolicy', name: 'peak', uid: 'p' },
  ];
  expect(isClosed(cluster({ metadata: { name: 'demo', labels, ownerReferences } }))).toBe(true);
  // As the garbage collector leaves it behind `kubectl delete --cascade=orphan`.
  expect(isClosed(cluster({ metadata: { name: 'demo', labels } }))).toBe(false);
  const { 'multi-cluster.demo.io/burst-policy': policy, ...taken } = labels;
  expect(policy).toBe('peak');
  expect(isClosed(cluster({ metadata: { name: 'demo', labels: taken, ownerReferences } }))).toBe(false);
});

describe('a member', () => {
  it.each<[string, WorkerCluster, OpenCluster | undefined, string | undefined]>([
    ['that does not answer cannot take work', cluster(), undefined, 'does not answer'],
    ['without a node that is Ready cannot', cluster(), open(node(false)), 'no node'],
    ['whose nodes are all cordoned cannot', cluster(), open(node(true, true)), 'no node'],
    ['with a node can', cluster(), open(node(true)), undefined],
    ['that scales from zero can', cluster({ spec: { cloudProvider: 'aws', dataPlaneNodes: 0 } }), open(), undefined],
    [
      'whose control plane still starts cannot',
      cluster({ status: { conditions: [unhealthy('ControlPlaneHealthy', 'not ready: kube-scheduler (0 of 1)')] } }),
      open(node(true)),
      'not ready: kube-scheduler (0 of 1)',
    ],
    [
      'whose DNS does not serve yet cannot',
      cluster({ status: { conditions: [unhealthy('SystemComponentsHealthy', 'cluster DNS is not ready yet')] } }),
      open(node(true)),
      'cluster DNS is not ready yet',
    ],
    [
      'of which one node of many is not Ready can',
      cluster({ status: { conditions: [unhealthy('EveryNodeReady', '1 of 2 nodes are Ready')] } }),
      open(node(true), node(false)),
      undefined,
    ],
  ])('%s', (_, one, line, why) => {
    if (why === undefined) expect(whyNotUsable(one, line)).toBeUndefined();
    else expect(whyNotUsable(one, line)).toContain(why);
  });

  it("is reached at the Hub's address", () => {
    const where = { namespace: 'shop', name: 'demo' };
    const member = { endpoint: 'https://{name}.{namespace}.example.com', proxyURL: 'socks5://proxy:1080' };
    expect(memberEndpointOf({ ...spec, member }, where, open())).toMatchObject({
      server: 'https://demo.shop.example.com',
      proxyURL: 'socks5://proxy:1080',
    });
    expect(memberEndpointOf(spec, where, open()).server).toBe('https://10.0.0.1');
  });

  it("without nodes shows its pools' possible capacity", () => {
    const profile = buildCloudProfile({
      spec: { machineTypes: [{ name: 'm5.large', cpu: '2', memory: '8Gi' }] },
    });
    const pools = [{ name: 'a', machineType: 'm5.large', count: 0 }];
    const one = cluster({
      spec: { cloudProvider: 'aws', pools: [{ name: 'a', minimum: 0, maximum: 3 }] },
      status: { admitted: { pools } },
    });
    expect(plannedCapacity(one, profile)).toEqual({ cpu: '6', memory: '24Gi', gpu: '0' });
  });
});

describe('the identity of a ClusterProfile', () => {
  const rules = (rights?: 'Read' | 'Manage') =>
    clusterProfileHub.identities({ name: 'shop--demo', hubName: 'neutral' } as Member, {
      ...spec,
      ...(rights && { clusterProfile: { rights } }),
    })[0]!.rules;

  it('may only read, without Secrets, unless the Hub grants more', () => {
    for (const { verbs } of rules()) expect(verbs).toEqual(['get', 'list', 'watch']);
    const inCore = rules().filter(({ apiGroups }) => apiGroups?.includes(''));
    expect(inCore.flatMap(({ resources }) => resources)).not.toContain('secrets');
    expect(inCore.flatMap(({ resources }) => resources)).not.toContain('*');
    const groups = rules().flatMap(({ apiGroups = [] }) => apiGroups);
    for (const group of ['*', 'rbac.authorization.k8s.io', 'certificates.k8s.io']) expect(groups).not.toContain(group);
    expect(rules('Manage')[0]!.verbs).toEqual(['*']);
  });
});
