import { beforeAll, describe, expect, it } from 'vitest';
import { LABELS } from '../../../operator/api/group.ts';
import type { Member, WantedObject } from '../../../operator/hubs/contract.ts';
import {
  KLUSTERLETS,
  type ManagedCluster,
  managedClusterTaints,
  TAINT,
  whyNotAvailable,
} from '../../../operator/hubs/managed-cluster.ts';
import { openClusterManagementHub as hub } from '../../../operator/hubs/open-cluster-management.ts';
import type { CertificateSigningRequest, KubeObject } from '../../../operator/kube/resources.ts';
import { agentRequest, certificateRequest } from '../../kit/hubs/certificate-request.ts';
import { member as other, reader, textOf } from './hub-members.ts';

const member = (more: Partial<Member> = {}) =>
  other({ credentials: { access: { token: 'of-member' }, bootstrap: { token: 'of-hub' } }, ...more });
const SPEC = { type: 'OpenClusterManagement' as const };
const ACCOUNT = 'system:serviceaccount:kube-system:coppice-shop--demo';
const unavailable = {
  key: 'cluster.open-cluster-management.io/unavailable',
  effect: 'NoSelect',
  timeAdded: '2026-11-22T11:00:00Z',
};

const operator = (image = 'ocm:1.3'): KubeObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'klusterlet', namespace: 'open-cluster-management' },
  spec: { template: { spec: { containers: [{ name: 'klusterlet', image }] } } },
});

const ours = (more: Partial<ManagedCluster> = {}): ManagedCluster => ({
  apiVersion: 'cluster.open-cluster-management.io/v1',
  kind: 'ManagedCluster',
  metadata: {
    name: 'shop--demo',
    labels: { [LABELS.membership]: 'uid', [LABELS.memberIdentity]: 'uid-of-kube-system', tier: 'gold' },
  },
  ...more,
});

type Objects = Parameters<typeof reader>[0];
const joining = async (objects: Objects = { deployments: [operator()] }, one = member()) => {
  const steps = hub.join(one, SPEC, await hub.observe(reader(objects), undefined, one, SPEC));
  const { apply = [], traces = [], waiting } = steps.find(({ type }) => type === 'Registered')!;
  return { steps, apply, traces, waiting };
};
const leaving = (objects: Objects, more: Partial<Member> = {}) =>
  hub.observe(reader(objects), undefined, member({ closed: 'Leaving', ...more }), SPEC);

describe('a certificate request of an OCM agent', () => {
  let asked: CertificateSigningRequest;
  beforeAll(async () => {
    asked = await agentRequest('shop--demo', 'agent-uid');
  });
  const approved = async (
    more: Partial<CertificateSigningRequest['spec']>,
    status?: CertificateSigningRequest['status'],
  ) => {
    const request = { ...asked, spec: { ...asked.spec, username: ACCOUNT, ...more }, ...(status && { status }) };
    const { apply } = await joining({ deployments: [operator()], certificatesigningrequests: [request] });
    return apply.filter(({ subresource }) => subresource === 'approval').length === 1;
  };

  it("is approved when this member's account requests it for this cluster", async () => {
    expect(await approved({})).toBe(true);
  });

  it('is left alone from others, for another signer, or when decided', async () => {
    expect(await approved({ username: 'system:serviceaccount:kube-system:coppice-shop--other' })).toBe(false);
    expect(await approved({ username: 'system:open-cluster-management:shop--demo:agent-uid' })).toBe(false);
    expect(await approved({ signerName: 'kubernetes.io/kubelet-serving' })).toBe(false);
    expect(await approved({}, { conditions: [{ type: 'Denied', status: 'True' }] })).toBe(false);
  });

  const USERS = 'system:open-cluster-management:';
  it.each<[string, string[], string[]]>([
    ['of another cluster', [`${USERS}shop--other:agent`], [`${USERS}shop--demo`]],
    ['in the group of another cluster', [`${USERS}shop--demo:agent`], [`${USERS}shop--other`]],
    ['in a second group', [`${USERS}shop--demo:agent`], [`${USERS}shop--demo`, 'system:masters']],
    ['in no group of its own', [`${USERS}shop--demo:agent`], [`${USERS}managed-clusters`]],
    ['of an add-on', [`${USERS}shop--demo:addon:x`], [`${USERS}shop--demo`]],
    ['of a second name', [`${USERS}shop--demo:agent`, 'system:admin'], [`${USERS}shop--demo`]],
    ['of nobody', [`${USERS}shop--demo`], [`${USERS}shop--demo`]],
  ])('is left alone when it is for somebody %s', async (_, names, groups) => {
    expect(await approved({ request: await certificateRequest(names, groups) })).toBe(false);
  });

  it('is left alone when unreadable', async () => {
    expect(await approved({ request: Buffer.from('no request').toString('base64') })).toBe(false);
  });
});

describe('a cluster that joins Open Cluster Management', () => {
  const spec = (apply: readonly WantedObject[], kind: string) =>
    apply.find(({ object }) => object.kind === kind)?.object.spec as Record<string, any> | undefined;

  it("has agents in the hub, with the hub operator's image unless the Hub names one", async () => {
    const { apply, steps, waiting } = await joining();
    expect(spec(apply, 'Klusterlet')).toMatchObject({
      clusterName: 'shop--demo',
      deployOption: { mode: 'SingletonHosted' },
      imagePullSpec: 'ocm:1.3',
    });
    expect(waiting).toContain('ManagedCluster shop--demo is not HubAcceptedManagedCluster yet');
    const [agents, access, bootstrap] = steps.find(({ type }) => type === 'CredentialsReady')!.apply!;
    expect(agents!.object.metadata.labels).toMatchObject({ 'pod-security.kubernetes.io/enforce': 'baseline' });
    expect(textOf(access, 'kubeconfig')).toContain('https://demo.example.com:6443');
    expect(textOf(access, 'kubeconfig')).toContain('of-member');
    expect(textOf(bootstrap, 'kubeconfig')).toContain('https://hub.example.com');
    expect(textOf(bootstrap, 'kubeconfig')).toContain('of-hub');
  });

  it('waits without a known image, and names the field for it', async () => {
    const { apply, waiting } = await joining({});
    expect(apply.map(({ object }) => object.kind)).toEqual(['ManagedCluster']);
    expect(waiting).toContain('set member.agentImage of the Hub');
  });

  it('has other agents in another hub, with names that fit a label', async () => {
    const one = await joining(undefined, member({ name: 'a'.repeat(63), hubName: 'first' }));
    const two = await joining(undefined, member({ name: 'a'.repeat(63), hubName: 'second' }));
    const name = ({ apply }: typeof one) =>
      apply.find(({ resource }) => resource === KLUSTERLETS)!.object.metadata.name;
    expect(name(one)).not.toBe(name(two));
    const { namespace } = spec(one.apply, 'Klusterlet')!;
    expect(namespace).not.toBe(spec(two.apply, 'Klusterlet')!.namespace);
    // What the hub's schema allows.
    expect(namespace).toMatch(/^open-cluster-management-[-a-z0-9]{0,32}[a-z0-9]$/);
  });

  it('has no traces below a foreign ManagedCluster', async () => {
    const theirs = ours({ metadata: { name: 'shop--demo' } });
    const ofOther = ours({ metadata: { name: 'shop--demo', labels: { [LABELS.membership]: 'uid' } } });
    for (const cluster of [undefined, theirs, ofOther])
      expect((await joining({ deployments: [operator()], managedclusters: cluster ? [cluster] : [] })).traces).toEqual(
        [],
      );
    const { traces } = await joining({ deployments: [operator()], managedclusters: [ours()] });
    expect(traces.map(({ name }) => name)).toContain('shop--demo');
  });

  it('waits until the hub shows the planned objects', async () => {
    const conditions = ['HubAcceptedManagedCluster', 'ManagedClusterJoined', 'ManagedClusterConditionAvailable'].map(
      (type) => ({ type, status: 'True' }),
    );
    const shown = async (allocatable: Record<string, string>) => {
      const cluster = ours({ status: { conditions, allocatable } });
      return (await joining({ deployments: [operator()], managedclusters: [cluster] })).steps.at(-1)?.waiting;
    };
    expect(await shown({ cpu: '4' })).toBe('ManagedCluster shop--demo does not show memory yet');
    expect(await shown({ cpu: '4', memory: '8Gi', pods: '110' })).toBeUndefined();
    expect(whyNotAvailable('x', ours({ status: { conditions } }))).toBeUndefined();
  });
});

describe('the taints of a ManagedCluster', () => {
  const added = { timeAdded: '2026-11-22T12:00:00Z' };
  const mine = (value: string, effect: string) => ({ key: TAINT, value, effect });

  it("keep the hub's with their time, and Coppice's unchanged", () => {
    const live = [{ ...mine('Initializing', 'NoSelectIfNew'), ...added }, unavailable];
    expect(managedClusterTaints(live, 'Initializing', false)).toEqual(live);
    expect(managedClusterTaints(live, undefined, false)).toEqual([unavailable]);
    expect(managedClusterTaints([unavailable], 'Asleep', false)).toEqual([
      unavailable,
      mine('Asleep', 'NoSelectIfNew'),
    ]);
  });

  it("have no time after a change, which the hub's webhook refuses", () => {
    const live = [{ ...mine('Asleep', 'NoSelectIfNew'), ...added }, unavailable];
    expect(managedClusterTaints(live, 'Leaving', false)).toEqual([mine('Leaving', 'NoSelectIfNew'), unavailable]);
  });

  it('evict work only in a drain, until the end of the leave or sleep', () => {
    expect(managedClusterTaints([], 'Asleep', true)).toEqual([mine('Asleep', 'NoSelect')]);
    expect(managedClusterTaints([mine('Asleep', 'NoSelect')], 'Asleep', false)).toEqual([mine('Asleep', 'NoSelect')]);
    expect(managedClusterTaints([mine('Asleep', 'NoSelect')], undefined, false)).toEqual([]);
    const cordoned = [{ ...mine('Leaving', 'NoSelectIfNew'), ...added }];
    expect(managedClusterTaints(cordoned, 'Leaving', false)).toEqual(cordoned);
    expect(managedClusterTaints(cordoned, 'Leaving', true)).toEqual([mine('Leaving', 'NoSelect')]);
    const drained = [{ ...mine('Leaving', 'NoSelect'), ...added }];
    expect(managedClusterTaints(drained, 'Leaving', false)).toEqual(drained);
  });
});

describe('a cluster that leaves Open Cluster Management', () => {
  const work = (name: string, labels: Record<string, string> = {}): KubeObject => ({
    apiVersion: 'work.open-cluster-management.io/v1',
    kind: 'ManifestWork',
    metadata: { name, namespace: 'shop--demo', labels },
  });
  const replicated = work('web', { 'work.open-cluster-management.io/manifestworkreplicaset': 'shop.web' });

  it('keeps the labels that Placements selected, although the cluster lost them', async () => {
    const seen = await leaving({ managedclusters: [ours()] });
    const [wanted] = hub.cordon!(member({ closed: 'Leaving', labels: {} }), SPEC, seen);
    expect(wanted?.object.metadata.labels).toMatchObject({ tier: 'gold' });
    expect(hub.cordon!(member({ closed: 'Leaving' }), SPEC, await leaving({}))).toEqual([]);
  });

  it.each<[string, KubeObject[], string, string[]]>([
    ['moves what a ManifestWorkReplicaSet made', [replicated], 'Moves', ['ManifestWork shop--demo/web']],
    [
      'would delete what somebody wrote',
      [replicated, work('db')],
      'Deletes',
      ['ManifestWork shop--demo/web', 'ManifestWork shop--demo/db'],
    ],
    ['does not count add-ons', [work('x', { 'open-cluster-management.io/addon-name': 'x' })], 'Moves', []],
  ])('%s', async (_, manifestworks, effect, placements) => {
    const seen = await leaving({ managedclusters: [ours()], manifestworks });
    expect(hub.drains(SPEC, seen)).toBe(effect);
    expect(hub.placements!(member(), seen)).toEqual(placements);
  });
});
