import { describe, expect, it, vi } from 'vitest';
import { hasAccount } from '../../../operator/accounts/has-account.ts';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import { findCondition } from '../../../operator/api/conditions.ts';
import { FINALIZER } from '../../../operator/api/group.ts';
import { type Shoot, unactedFields } from '../../../operator/api/shoot.ts';
import { unactedClusterFields, type WorkerCluster } from '../../../operator/api/workercluster.ts';
import type { SleepOrder } from '../../../operator/capacity/sleep-order.ts';
import type { ManagedFacts } from '../../../operator/controllers/managed/facts.ts';
import { planWorkerCluster } from '../../../operator/controllers/workercluster/plan.ts';
import { providerNamed } from '../../../providers/index.ts';
import { buildCloudProfile, buildWorkerCluster } from '../../kit/builders/objects.ts';
import { managedOnly } from '../../kit/managed-only.ts';
import { MemoryCloud } from '../../kit/memory-cloud.ts';

const NOW = new Date('2026-11-21T00:00:00Z');

const profile = buildCloudProfile({
  metadata: { name: 'aws' },
  spec: {
    type: 'aws',
    kubernetes: {
      versions: [
        { version: '1.35.4', classification: 'deprecated' },
        { version: '1.36.1', classification: 'supported' },
        { version: '1.36.3', classification: 'supported' },
        { version: '1.37.0', classification: 'preview' },
        { version: '1.34.0', classification: 'deprecated', expirationDate: '2026-01-01T00:00:00Z' },
      ],
    },
    machineTypes: [{ name: 'm5.large', cpu: 2, gpu: 0, memory: '8Gi' }],
    regions: [{ name: 'eu-central-1', zones: [{ name: 'eu-central-1a' }] }],
    defaults: { mode: 'Managed', region: 'eu-central-1', machineType: 'm5.large' },
    limits: { maxNodesTotal: 100 },
  },
});

const cluster = (spec: object = {}, more: object = {}): WorkerCluster =>
  buildWorkerCluster({
    metadata: { name: 'demo', namespace: 'default', uid: 'u', generation: 1, finalizers: [FINALIZER] },
    spec: { cloudProvider: 'aws', controlPlaneNodes: 3, dataPlaneNodes: 20, ...spec },
    ...more,
  });

const plan = (wc: WorkerCluster, shoot?: Shoot, withProfile: CloudProfile | undefined = profile) =>
  planWorkerCluster(
    { cluster: wc, profile: withProfile, profileNames: ['aws', 'local'], provider: providerNamed('simulated'), shoot },
    NOW,
  );

const shootOf = (wc: WorkerCluster, status: object = {}): Shoot => {
  const { shoot } = plan(wc);
  return { ...shoot!, metadata: { ...shoot!.metadata, generation: 1 }, status } as Shoot;
};

it("a size above the profile's limit is refused with the possible size, and a cluster above a lowered limit may shrink", () => {
  const large = cluster({ dataPlaneNodes: 80 });
  const shoot = shootOf(large);
  const lowered = { ...profile, spec: { ...profile.spec, limits: { maxNodesTotal: 40 } } };
  const refusal = (nodes: number) => {
    const { status, shoot: asked } = plan(cluster({ dataPlaneNodes: nodes }), shoot, lowered);
    const said = status.conditions?.find(({ type }) => type === 'SpecAccepted');
    return asked ? undefined : said?.message;
  };
  expect(refusal(4000)).toContain('allows at most 40 nodes in a cluster, not 4000; ask for 40 or fewer');
  expect([refusal(80), refusal(60), refusal(2)]).toEqual([undefined, undefined, undefined]);
  expect(refusal(81)).toContain('at most 40 nodes');
});

it('a spec refused from the start reports that nothing was created, and holds nothing', () => {
  const fresh = { metadata: { name: 'demo', namespace: 'default', uid: 'u', generation: 1 } };
  const wrong = plan(cluster({ region: 'mars-1' }, fresh));
  expect([wrong.status.nothingMade, wrong.finalizer]).toEqual([true, undefined]);
  const right = plan(cluster({ region: 'eu-central-1' }, { ...fresh, status: wrong.status }));
  expect([right.status.nothingMade, right.finalizer]).toEqual([undefined, 'add']);
});

it.each([
  ['restored without status, with the finalizer of before', cluster({ region: 'mars-1' })],
  [
    'granted something before',
    cluster(
      { region: 'mars-1' },
      { metadata: { name: 'demo', uid: 'u' }, status: { admitted: { mode: 'Managed', pools: [] } } },
    ),
  ],
])('a refused cluster that was %s may have been made', (_what, refused) => {
  expect(plan(refused).status.nothingMade).toBeUndefined();
});

it("a cluster with Coppice's network reports once that NetworkPolicies have no effect", () => {
  const type = 'NetworkPoliciesEnforced';
  const shoot = shootOf(cluster({ mode: 'Hosted' }));
  expect(findCondition(plan(cluster({ mode: 'Hosted' })).status.conditions, type)).toBeUndefined();
  expect(findCondition(plan(cluster({ mode: 'Managed' })).status.conditions, type)).toBeUndefined();
  for (const mode of ['Hosted', 'SelfManaged']) {
    const wc = cluster({ mode });
    const { status } = plan(wc, shoot);
    expect(findCondition(status.conditions, type)).toMatchObject({
      status: 'False',
      reason: 'NoEnforcement',
      message: expect.stringContaining('each pod reaches all pods'),
    });
    // What is said again is no change: nothing is written for it.
    expect(plan({ ...wc, status }, shoot).status).toEqual(status);
  }
});

it('addons are passed to the Shoot, whose status is reported; for managed clusters they are reported as kept', () => {
  const wc = cluster({ mode: 'Hosted', addons: { metricsServer: { enabled: true } } });
  const shoot = shootOf(wc);
  expect(shoot.spec.addons).toEqual(wc.spec.addons);
  expect(unactedFields(shoot.spec)).toEqual([]);
  expect(unactedClusterFields(wc.spec, 'Hosted')).toEqual([]);
  expect(unactedClusterFields(wc.spec, 'Managed')).toEqual(['addons.metricsServer']);
  const said = { type: 'AddonsReady', status: 'True', reason: 'Serving', message: 'kubectl top has figures' } as const;
  shoot.status = { conditions: [{ ...said, lastTransitionTime: '2026-01-01T00:00:00Z' }] } as Shoot['status'];
  expect(findCondition(plan(wc, shoot).status.conditions, 'AddonsReady')).toMatchObject(said);
  // Of Gardener's own none is run.
  const gardener = { ...shoot.spec, addons: { nginxIngress: { enabled: true } } };
  expect(unactedFields(gardener)).toEqual(['addons.nginxIngress']);
});

it("a new cluster with another's names is refused in every mode, but not a running one", () => {
  for (const mode of ['Hosted', 'SelfManaged', 'Managed'] as const) {
    const wc = cluster({ mode });
    const view = {
      cluster: wc,
      profile,
      profileNames: ['aws'],
      provider: providerNamed('simulated'),
      shoot: undefined,
    };
    const idTakenBy = 'WorkerCluster team/other';
    const accepted = (more: object) =>
      findCondition(planWorkerCluster({ ...view, ...more }, NOW).status?.conditions, 'SpecAccepted');
    expect(accepted({ idTakenBy })).toMatchObject({
      status: 'False',
      message: expect.stringContaining('same names as what is made for WorkerCluster team/other'),
    });
    if (mode === 'Hosted') expect(accepted({ idTakenBy, shoot: shootOf(wc) })?.message).not.toContain('same names');
  }
});

describe('a provider that this garden does not permit', () => {
  const barred = { ...providerNamed('local'), barred: 'whoever runs this garden must allow it' };
  const view = (shoot?: Shoot) => ({
    cluster: cluster({ mode: 'Hosted' }),
    profile,
    profileNames: ['aws'],
    provider: barred,
    shoot,
  });

  it('creates no new cluster, and the condition says who must permit it', () => {
    const refused = planWorkerCluster(view(), NOW);
    expect(refused.shoot).toBeUndefined();
    expect(findCondition(refused.status.conditions, 'Ready')).toMatchObject({
      status: 'False',
      message: 'spec.cloudProvider: whoever runs this garden must allow it',
      codes: ['ERR_CONFIGURATION_PROBLEM'],
    });
  });

  it('lets existing clusters grow', () => {
    expect(planWorkerCluster(view(shootOf(cluster({ dataPlaneNodes: 1 }))), NOW).shoot).toBeDefined();
  });
});

describe('planWorkerCluster', () => {
  it("turns the first example into a Shoot with the profile's defaults", () => {
    const { shoot } = plan(cluster());
    expect(shoot?.spec).toMatchObject({
      cloudProfile: { name: 'aws' },
      region: 'eu-central-1',
      kubernetes: { version: '1.36.3' },
      controlPlane: { replicas: 3 },
      provider: {
        type: 'aws',
        workers: [{ name: 'default', machine: { type: 'm5.large' }, minimum: 20, maximum: 20 }],
      },
    });
    expect(shoot?.metadata.finalizers).toEqual([FINALIZER]);
  });

  it('reports a simulated cluster prominently, and hosts what a cloud would manage', () => {
    const { status } = plan(cluster());
    expect(status).toMatchObject({ mode: 'Hosted', provider: 'simulated', simulated: true });
    expect(findCondition(status.conditions, 'Simulated')?.message).toMatch(/^SIMULATED/);
  });

  it('reports a missing control plane prominently, with a kubeconfig', () => {
    const paper = {
      ...profile,
      spec: { ...profile.spec, providerConfig: { simulation: { controlPlane: { run: false } } } },
    };
    const none = {
      type: 'NoControlPlane',
      status: 'True',
      reason: 'NotRun',
      message: 'NO CONTROL PLANE',
      lastTransitionTime: '',
    };
    const conditions = [
      { ...none, type: 'Ready', reason: 'ObjectsOnly' },
      none,
      { ...none, type: 'APIServerAvailable', status: 'False' },
    ];
    const shoot = shootOf(cluster(), { observedGeneration: 1, conditions });
    const { status } = plan(cluster(), shoot, paper);
    expect(findCondition(status.conditions, 'Simulated')?.message).toContain('NO control plane');
    expect(findCondition(status.conditions, 'NoControlPlane')).toMatchObject({ status: 'True' });
    expect(findCondition(status.conditions, 'Ready')).toMatchObject({
      status: 'True',
      reason: 'ObjectsOnly',
      message: 'NO CONTROL PLANE',
    });
    expect(status.kubeconfigRef).toEqual({ name: 'demo-kubeconfig', key: 'value' });
  });

  const refused: [string, object, string, string][] = [
    ['a region the profile lacks', { region: 'mars-1' }, 'region', 'has no region "mars-1"'],
    ['a zone the region lacks', { zones: ['eu-central-1z'] }, 'zones', 'has no zone'],
    ['an unknown version', { kubernetes: { version: '1.99.0' } }, 'kubernetes.version', 'offers no Kubernetes 1.99.0'],
    ['an expired version', { kubernetes: { version: '1.34' } }, 'kubernetes.version', 'offers no Kubernetes 1.34'],
    ['an unknown machine type', { machineType: 'm99.huge' }, 'machineType', 'has no machine type "m99.huge"'],
    ['five hosted members', { controlPlaneNodes: 5 }, 'controlPlaneNodes', '1 or 3 members'],
    ['more nodes than allowed', { dataPlaneNodes: 101 }, 'dataPlaneNodes', 'at most 100'],
    ['a mode that its provider lacks', { mode: 'SelfManaged' }, 'mode', 'cannot make machines for a control plane'],
  ];
  it.each(refused)('refuses %s, and creates nothing', (_what, spec, field, words) => {
    const { shoot, status } = plan(cluster(spec));
    expect(shoot).toBeUndefined();
    expect(status.phase).toBe('Failed');
    const condition = findCondition(status.conditions, 'Ready');
    expect(condition).toMatchObject({ status: 'False', reason: 'ConfigurationProblem' });
    expect(condition?.message).toContain(`spec.${field}`);
    expect(condition?.message).toContain(words);
    expect(status.lastErrors?.[0]?.codes?.[0]).toMatch(/^ERR_/);
  });

  it('names existing profiles when one is missing', () => {
    const missing = planWorkerCluster(
      {
        cluster: cluster({ cloudProvider: 'moon' }),
        profile: undefined,
        profileNames: ['aws', 'local'],
        provider: undefined,
        shoot: undefined,
      },
      NOW,
    );
    expect(findCondition(missing.status.conditions, 'SpecAccepted')?.message).toContain(
      'there is no CloudProfile "moon" (there are: aws, local)',
    );
  });

  it('leaves a running cluster unchanged when a change is impossible', () => {
    const wc = cluster();
    const shoot = shootOf(wc, { kubernetesVersion: '1.36.3' });
    const changed = plan(cluster({ machineType: 'm99.huge' }), shoot);
    expect(changed.shoot).toBeUndefined();
    expect(changed.deleteShoot).toBeUndefined();
    expect(findCondition(changed.status.conditions, 'SpecAccepted')?.message).toContain('The cluster stays as it was');
  });

  it('keeps the running version until another is requested', () => {
    const running = shootOf(cluster(), { kubernetesVersion: '1.36.1' });
    expect(plan(cluster(), running).shoot?.spec.kubernetes.version).toBe('1.36.1');
    expect(plan(cluster({ kubernetes: { version: '1.36' } }), running).shoot?.spec.kubernetes.version).toBe('1.36.3');
    const back = plan(cluster({ kubernetes: { version: '1.35.4' } }), running);
    expect(findCondition(back.status.conditions, 'SpecAccepted')?.message).toContain('older than 1.36.1');
  });

  it('is Ready only when the Shoot is, for this spec', () => {
    const wc = cluster();
    const ready = [
      { type: 'Ready', status: 'True', reason: 'x', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
    ];
    expect(
      findCondition(plan(wc, shootOf(wc, { conditions: ready, observedGeneration: 1 })).status.conditions, 'Ready')
        ?.status,
    ).toBe('True');
    expect(
      findCondition(plan(wc, shootOf(wc, { conditions: ready, observedGeneration: 0 })).status.conditions, 'Ready')
        ?.status,
    ).toBe('False');
  });

  it('is constant, so that nothing is written', () => {
    const wc = cluster();
    const first = plan(wc).status;
    const again = planWorkerCluster(
      {
        cluster: { ...wc, status: first },
        profile,
        profileNames: ['aws', 'local'],
        provider: providerNamed('simulated'),
        shoot: undefined,
      },
      new Date(+NOW + 60_000),
    ).status;
    expect(again).toEqual(first);
  });

  it('deletes the Shoot before the release, and reports what it waits for', () => {
    const wc = cluster();
    const dying = { ...wc, metadata: { ...wc.metadata, deletionTimestamp: '2026-11-21T00:00:00Z' } };
    const first = plan(dying, shootOf(wc));
    expect(first).toMatchObject({ deleteShoot: true });
    expect(first.finalizer).toBeUndefined();
    expect(findCondition(first.status.conditions, 'Deleting')?.message).toContain('waiting for Shoot default/demo');
    expect(plan(dying)).toMatchObject({ finalizer: 'remove' });
  });
});

describe('modes', () => {
  const managed = managedOnly('aws', new MemoryCloud().managed());
  const view = { profile, profileNames: ['aws'], provider: managed, shoot: undefined };
  const withCredentials = cluster({ credentialsRef: { name: 'cloud' } });

  it("Managed passes the spec to the cloud in the profile's terms", () => {
    const pools = [
      { name: 'fixed', minimum: 2 },
      { name: 'free', minimum: 1, maximum: 5, spot: true, labels: { a: 'b' } },
    ];
    const asked = cluster({ credentialsRef: { name: 'cloud' }, dataPlaneNodes: undefined, pools });
    const { managed: wish, shoot, status } = planWorkerCluster({ ...view, cluster: asked }, NOW);
    expect(shoot).toBeUndefined();
    expect(wish?.desired).toMatchObject({
      region: 'eu-central-1',
      zones: ['eu-central-1a'],
      kubernetesVersion: '1.36.3',
      cidrs: { nodes: '10.250.0.0/16', pods: '100.96.0.0/11', services: '100.64.0.0/13' },
      pools: [
        { name: 'fixed', minimum: 2, maximum: 2, desired: 2, spot: false, architecture: 'amd64', gpu: 0 },
        { name: 'free', minimum: 1, maximum: 5, spot: true, labels: { a: 'b' } },
      ],
    });
    // Between its minimum and maximum an autoscaler decides.
    expect(wish?.desired?.pools[1]).not.toHaveProperty('desired');
    expect(status).toMatchObject({ mode: 'Managed', provider: 'aws', simulated: false, phase: 'Pending' });
  });

  it("apply a number of nodes exactly, whatever the pools' limits", () => {
    const pools = [{ name: 'free', minimum: 1, maximum: 5 }];
    const asked = cluster({ credentialsRef: { name: 'cloud' }, dataPlaneNodes: 3, pools });
    const { managed: wish } = planWorkerCluster({ ...view, cluster: asked }, NOW);
    expect(wish?.desired?.pools).toMatchObject([{ minimum: 1, maximum: 5, desired: 3 }]);
  });

  describe('adopt', () => {
    const adopting = managedOnly('aws', { ...new MemoryCloud().managed(), adopts: true });
    const adopt = { id: 'theirs' };
    const asked = (spec: object, provider = adopting) => {
      const wc = cluster({ credentialsRef: { name: 'cloud' }, dataPlaneNodes: undefined, adopt, ...spec });
      return planWorkerCluster({ ...view, provider, cluster: wc }, NOW);
    };

    it("leaves a cluster unchanged: its version, no pools of Coppice's, and it stays at the end", () => {
      const { managed: wish, status } = asked({});
      expect(wish?.desired).toMatchObject({
        kubernetesVersion: '',
        pools: [],
        adopt: { id: 'theirs', deletionPolicy: 'Release' },
      });
      expect(findCondition(status.conditions, 'SpecAccepted')?.message).toBe('the spec is valid and was accepted');
    });

    it('adds requested pools', () => {
      const more = {
        dataPlaneNodes: 2,
        kubernetes: { version: '1.36' },
        adopt: { ...adopt, deletionPolicy: 'Delete' },
      };
      expect(asked(more).managed?.desired).toMatchObject({
        kubernetesVersion: '1.36.3',
        pools: [{ desired: 2 }],
        adopt: { deletionPolicy: 'Delete' },
      });
    });

    it.each([
      ['by a provider that cannot', asked({}, managed), 'provider aws cannot take over clusters yet'],
      ['in mode Hosted', asked({ mode: 'Hosted' }), 'only managed clusters can be taken over'],
    ])('is refused %s: a second cluster would be made beside the one that was meant', (_, plan, expected) => {
      expect(findCondition(plan.status.conditions, 'SpecAccepted')?.message).toContain(expected);
      expect(plan.shoot ?? plan.managed?.desired).toBeUndefined();
    });
  });

  describe('pools with GPUs', () => {
    const types = [
      ...profile.spec.machineTypes,
      { name: 'g-1', cpu: '4', gpu: '1', memory: '16Gi' },
      { name: 'g-4', cpu: '48', gpu: '4', memory: '192Gi' },
    ];
    const withGPUs = { ...profile, spec: { ...profile.spec, machineTypes: types } };
    const asked = (pool: object, more = {}) => {
      const wc = cluster({
        credentialsRef: { name: 'cloud' },
        dataPlaneNodes: undefined,
        pools: [{ name: 'g', minimum: 1, ...pool }],
        ...more,
      });
      return planWorkerCluster({ ...view, profile: withGPUs, cluster: wc }, NOW);
    };

    it('get a machine type with GPUs', () => {
      const { managed: wish, status } = asked({ gpu: 2 });
      expect(wish?.desired?.pools).toMatchObject([{ machineType: 'g-4', gpu: 4 }]);
      expect(status.admitted?.pools).toMatchObject([{ machineType: 'g-4' }]);
      expect(findCondition(status.conditions, 'SpecAccepted')?.message).toBe('the spec is valid and was accepted');
    });

    it.each([
      [
        'no type has so many',
        { gpu: 8 },
        'has no machine type with 8 GPUs in eu-central-1a (with GPUs it has: g-1 with 1, g-4 with 4)',
      ],
      ['the named one has fewer', { gpu: 2, machineType: 'g-1' }, 'machine type g-1 has 1 GPUs, not 2'],
    ])('are refused where %s', (_, pool, expected) => {
      const { managed: wish, status } = asked(pool);
      expect(wish?.desired).toBeUndefined();
      const accepted = findCondition(status.conditions, 'SpecAccepted');
      expect(accepted).toMatchObject({ status: 'False', codes: ['ERR_CONFIGURATION_PROBLEM'] });
      expect(accepted?.message).toContain(`spec.pools[0].gpu: `);
      expect(accepted?.message).toContain(expected);
    });
  });

  describe('sleep', () => {
    const fee = { hourly: '0.10', currency: 'USD' };
    const priced = { ...profile, spec: { ...profile.spec, controlPlaneFee: fee } };
    const facts: ManagedFacts = {
      seen: true,
      exists: true,
      gone: false,
      settled: true,
      operation: undefined,
      errors: [],
      credentials: undefined,
      version: '1.36.3',
      planned: undefined,
      outputs: { name: 'x', endpoint: 'https://x', certificateAuthority: '', version: '1.36' },
      access: { ok: true, message: '' },
      inside: { nodes: [], pods: [] },
      drift: undefined,
      madeIn: undefined,
      pools: undefined,
    };
    const asked = (hibernation: object, changes: Partial<ManagedFacts> = {}) => {
      const wc = cluster({ credentialsRef: { name: 'cloud' }, dataPlaneNodes: 3, hibernation });
      return planWorkerCluster({ ...view, profile: priced, cluster: wc, managed: { ...facts, ...changes } }, NOW);
    };
    const said = (plan: ReturnType<typeof asked>, type: string) => findCondition(plan.status.conditions, type);

    it('removes the nodes, and reports that the control plane still costs', () => {
      const plan = asked({ enabled: true });
      expect(plan.managed?.desired).toMatchObject({ asleep: true, pools: [{ minimum: 0, desired: 0, maximum: 3 }] });
      expect(plan.status.nodes).toMatchObject({ desired: 0 });
      expect(plan.status.cost).toMatchObject({ hourly: '0.1' });
      expect(said(plan, 'Hibernated')).toMatchObject({ status: 'True' });
      expect(said(plan, 'Hibernated')?.message).toContain('is still billed at 0.10 USD an hour');
      expect(said(plan, 'Ready')?.status).toBe('True');
      expect(said(plan, 'SpecAccepted')?.message).toBe('the spec is valid and was accepted');
    });

    it('waits for draining hubs first, until their time is over', () => {
      const wc = cluster({ credentialsRef: { name: 'cloud' }, dataPlaneNodes: 3, hibernation: { enabled: true } });
      const until = new Date(+NOW + 60_000);
      const keepsAwake = vi.fn(() => [{ by: 'Membership one-in-all', advice: 'the hub moves a binding', until }]);
      const planAt = (now: Date, sleeping = wc) =>
        planWorkerCluster({ ...view, profile: priced, cluster: sleeping, managed: facts, keepsAwake }, now);
      const plan = planAt(NOW);
      expect(plan.managed?.desired).toMatchObject({ pools: [{ desired: 3 }] });
      expect(plan.managed?.desired?.asleep).toBeFalsy();
      expect(said(plan, 'Hibernated')).toMatchObject({ status: 'False', reason: 'FallingAsleep' });
      expect(said(plan, 'Hibernated')?.message).toBe(
        'Membership one-in-all holds the cluster: the hub moves a binding',
      );
      // By it the hubs know that they are to move it.
      expect(plan.status.hibernation).toMatchObject({ asleep: true });
      expect(plan.next).toEqual(until);
      expect(keepsAwake).toHaveBeenCalledWith(new Date(plan.status.hibernation!.since));
      expect(planAt(until).managed?.desired).toMatchObject({ asleep: true, pools: [{ desired: 0 }] });
    });

    describe('of a hosted cluster', () => {
      const made = { lastOperation: { type: 'Create', state: 'Succeeded' } };
      const asked = (hibernation: object, status: object | null = made, changes: object = {}) => {
        const wc = cluster({ mode: 'Hosted', dataPlaneNodes: 3, hibernation }, changes);
        const shoot = status ? shootOf(cluster({ mode: 'Hosted', dataPlaneNodes: 3 }), status) : undefined;
        const keepsAwake = () => ('awake' in changes ? [{ by: 'Membership one', advice: 'it moves work' }] : []);
        const provider = providerNamed('simulated');
        const sleepOrder = 'order' in changes ? (changes.order as SleepOrder) : 'none';
        return planWorkerCluster(
          { cluster: wc, profile, profileNames: ['aws'], provider, shoot, keepsAwake, sleepOrder },
          NOW,
        );
      };
      const sleeping = {
        lastOperation: { type: 'Hibernate', state: 'Succeeded' },
        conditions: [
          { type: 'Hibernated', status: 'True', reason: 'NoControlPlane', message: 'sleeps' },
          { type: 'APIServerAvailable', status: 'False', reason: 'Hibernated', message: 'not run' },
        ],
      };

      it('is passed to its Shoot, which keeps the sizes to wake to', () => {
        const { shoot, status } = asked({ enabled: true });
        expect(shoot?.spec.hibernation).toEqual({ enabled: true });
        expect(shoot?.spec.provider.workers).toMatchObject([{ minimum: 3, maximum: 3 }]);
        // By it hubs know, and schedules.
        expect(status.hibernation).toMatchObject({ asleep: true, enabled: true });
        expect(status.admitted?.pools).toMatchObject([{ count: 3 }]);
        expect(findCondition(status.conditions, 'SpecAccepted')?.message).toBe('the spec is valid and was accepted');
      });

      it('is not begun after an operator that ignored it, with advice how to begin it', () => {
        // As operators of commit d22f180 tell of it.
        const message = 'the spec was accepted; these fields are stored without effect yet: hibernation';
        const old = { conditions: [{ type: 'SpecAccepted', status: 'True', reason: 'Accepted', message }] };
        const first = asked({ enabled: true }, made, { status: old });
        const second = asked({ enabled: true }, made, { status: first.status });
        for (const { shoot, status } of [first, second]) {
          expect(shoot?.spec.hibernation).toBeUndefined();
          expect(findCondition(status.conditions, 'SpecAccepted')?.message).toContain('hibernation.enabled');
          expect(findCondition(status.conditions, 'Hibernated')).toMatchObject({
            status: 'False',
            message: expect.stringContaining('set it to false, then to true'),
          });
        }
        const off = asked({ enabled: false }, made, { status: second.status });
        expect(findCondition(off.status.conditions, 'SpecAccepted')?.message).toBe(
          'the spec is valid and was accepted',
        );
        const on = asked({ enabled: true }, made, { status: off.status });
        expect(on.shoot?.spec.hibernation).toEqual({ enabled: true });
      });

      it('follows schedules, which its Shoot does not know', () => {
        const schedules = [{ start: '0 20 * * *', end: '0 6 * * *' }];
        const since = { hibernation: { asleep: false, since: '2026-11-20T12:00:00Z' } };
        const { shoot, next } = asked({ schedules }, made, { status: since });
        expect(shoot?.spec.hibernation).toEqual({ enabled: true });
        expect(next).toEqual(new Date('2026-11-21T06:00:00Z'));
        expect(asked({ schedules: [{ start: '0 20 * * *' }], enabled: false }).shoot?.spec.hibernation).toBeUndefined();
      });

      it("follows a policy's order, and names the policy", () => {
        const order = { by: 'BurstPolicy shop/peak', why: 'work waits', at: '2026-11-20T12:00:00Z' };
        const awake = asked({ enabled: true }, sleeping, { order: { ...order, asleep: false } });
        expect(awake.shoot?.spec.hibernation).toBeUndefined();
        expect(awake.status.hibernation).toMatchObject({ asleep: false, order: { otherwise: true } });
        expect(findCondition(awake.status.conditions, 'Hibernated')).toMatchObject({
          reason: 'Waking',
          message: expect.stringContaining('; BurstPolicy shop/peak keeps it awake: work waits'),
        });
        const asleep = asked({ enabled: false }, sleeping, { order: { ...order, asleep: true } });
        expect(asleep.shoot?.spec.hibernation).toEqual({ enabled: true });
        expect(asleep.shoot?.spec.provider.workers).toMatchObject([{ minimum: 3, maximum: 3 }]);
        expect(findCondition(asleep.status.conditions, 'Hibernated')).toMatchObject({
          status: 'True',
          message: 'sleeps; BurstPolicy shop/peak put it to sleep: work waits',
        });
      });

      it('begins after the creation', () => {
        for (const status of [null, { lastOperation: { type: 'Create', state: 'Processing' } }])
          expect(asked({ enabled: true }, status).shoot?.spec.hibernation).toBeUndefined();
      });

      it('waits for draining hubs', () => {
        const { shoot, status } = asked({ enabled: true }, made, { awake: true });
        expect(shoot?.spec.hibernation).toBeUndefined();
        expect(findCondition(status.conditions, 'Hibernated')).toMatchObject({
          status: 'False',
          reason: 'FallingAsleep',
          message: 'Membership one holds the cluster: it moves work',
        });
      });

      it('is reported as sleep, not as failure, and ends', () => {
        const { status } = asked({ enabled: true }, sleeping);
        expect(status).toMatchObject({ phase: 'Hibernated', lastErrors: [] });
        expect(findCondition(status.conditions, 'Hibernated')).toMatchObject({ status: 'True' });
        const waking = asked({ enabled: false }, sleeping, { status: { phase: 'Hibernated' } });
        expect(waking.shoot?.spec.hibernation).toBeUndefined();
        expect(findCondition(waking.status.conditions, 'Hibernated')).toMatchObject({ reason: 'Waking' });
        const under = { lastOperation: { type: 'Wake', state: 'Processing' } };
        expect(asked({ enabled: false }, under, { status: { phase: 'Hibernated' } }).status.phase).toBe('Updating');
        const awake = { lastOperation: { type: 'Wake', state: 'Succeeded' } };
        expect(findCondition(asked({ enabled: false }, awake).status.conditions, 'Hibernated')?.reason).toBe('Awake');
      });
    });

    it('ends with as many nodes as before', () => {
      const plan = asked({ enabled: false });
      expect(plan.managed?.desired?.pools).toMatchObject([{ desired: 3 }]);
      expect(said(plan, 'Hibernated')).toMatchObject({ status: 'False', reason: 'Awake' });
    });

    it('begins after creation: add-ons need nodes to start', () => {
      const plan = asked({ enabled: true }, { outputs: undefined, access: undefined, inside: undefined });
      expect(plan.managed?.desired?.pools).toMatchObject([{ desired: 3 }]);
    });

    it('is requeued for its schedule, and no sooner', () => {
      const plan = asked({ schedules: [{ start: '30 * * * *' }] });
      expect(plan.next).toEqual(new Date(Math.floor(+NOW / 3600_000) * 3600_000 + 1800_000));
    });
  });

  it('Hosted is refused where a cloud has no machines for it', () => {
    const { status } = planWorkerCluster({ ...view, cluster: cluster({ mode: 'Hosted' }) }, NOW);
    expect(findCondition(status.conditions, 'SpecAccepted')?.message).toContain('use mode Managed');
  });

  it("Hosted creates a Shoot with machines in the cluster's account", () => {
    const inCloud = { ...managed, inCloud: true, validate: () => [] };
    const asked = { mode: 'Hosted', dataPlaneNodes: 2, pools: [{ name: 'a', minimum: 2, spot: true }] };
    const planned = (spec: object) => planWorkerCluster({ ...view, provider: inCloud, cluster: cluster(spec) }, NOW);
    const without = findCondition(planned(asked).status.conditions, 'SpecAccepted');
    expect(without?.message).toContain('spec.credentialsRef: machines of provider aws are made in an account of yours');
    const { shoot, status } = planned({ ...asked, credentialsRef: { name: 'cloud' } });
    expect(shoot?.spec).toMatchObject({
      networking: { nodes: '10.250.0.0/16' },
      provider: { workers: [{ name: 'a', minimum: 2, providerConfig: { spot: true } }] },
    });
    expect(findCondition(status.conditions, 'SpecAccepted')?.message).toBe('the spec is valid and was accepted');
  });

  it("Hosted in a cloud passes the drift policy on, and reports the Shoot's drift", () => {
    const inCloud = { ...managed, inCloud: true, validate: () => [] };
    const spec = { mode: 'Hosted', credentialsRef: { name: 'cloud' }, drift: { policy: 'Mend' } };
    const wc = cluster(spec);
    const told = { type: 'Drifted', status: 'True', reason: 'ChangedByOthers', message: 'x' } as const;
    const status = { conditions: [{ ...told, lastTransitionTime: NOW.toISOString() }] };
    const shoot = shootOf(wc, status as unknown as Parameters<typeof shootOf>[1]);
    const plan = planWorkerCluster({ ...view, provider: inCloud, cluster: wc, shoot }, NOW);
    expect(plan.shoot?.spec.drift).toEqual({ policy: 'Mend' });
    expect(findCondition(plan.status.conditions, 'Drifted')).toMatchObject(told);
    expect(findCondition(plan.status.conditions, 'SpecAccepted')?.message).toBe('the spec is valid and was accepted');
  });

  it("a running hosted cluster is not moved into a cloud when its profile's default or provider changes", () => {
    const simulated = cluster();
    const shoot = shootOf(simulated, { kubernetesVersion: '1.36.3' });
    const { managed: wish, status } = planWorkerCluster({ ...view, cluster: withCredentials, shoot }, NOW);
    expect(wish).toBeUndefined();
    expect(status.mode).toBe('Hosted');
  });

  it.each<[string, object, boolean, boolean]>([
    ['names credentials', { spec: { credentialsRef: { name: 'x' } } }, false, true],
    ['names none', {}, false, false],
    [
      'is simulated and then names some',
      { spec: { credentialsRef: { name: 'x' } }, status: { simulated: true } },
      true,
      false,
    ],
    ['runs in a cloud and then names none', { status: { mode: 'Managed' } }, false, true],
  ])('a cluster that %s', (_what, more, hasShoot, expected) => {
    const wc = cluster();
    const changed = { ...wc, ...more, spec: { ...wc.spec, ...(more as { spec?: object }).spec } } as WorkerCluster;
    expect(hasAccount(changed, hasShoot ? shootOf(wc) : undefined)).toBe(expected);
  });
});
