import { describe, expect, it } from 'vitest';
import type { HubSpec } from '../../../operator/api/hub.ts';
import { parseBytes, parseCpu } from '../../../operator/api/quantity.ts';
import type { HubAmounts, Member, Reader } from '../../../operator/hubs/contract.ts';
import {
  clusterObject,
  freeOn,
  type KarmadaCluster,
  karmadaTaints,
  offeredLabel,
  resourceModels,
  whyNotReady,
} from '../../../operator/hubs/karmada/cluster.ts';
import { karmadaHub } from '../../../operator/hubs/karmada/karmada.ts';
import { clusterNamespace } from '../../../operator/hubs/karmada/sync-mode.ts';
import type { KubeObject, Resource } from '../../../operator/kube/resources.ts';

const GROUP = 'multi-cluster.demo.io';
const initializing = { key: `${GROUP}/initializing`, effect: 'NoSchedule' } as const;
const leaving = { key: `${GROUP}/leaving`, effect: 'NoSchedule' } as const;
const draining = { key: `${GROUP}/leaving`, effect: 'NoExecute' } as const;
const emptied = { key: `${GROUP}/asleep`, effect: 'NoExecute' } as const;
const asleep = { key: `${GROUP}/asleep`, effect: 'NoSchedule' } as const;
const notReady = { key: 'cluster.karmada.io/not-ready', effect: 'NoSchedule' } as const;
const cordoned = { key: 'cluster.karmada.io/unschedulable', effect: 'NoSchedule' } as const;
const since = { ...draining, timeAdded: '2026-11-22T12:00:00Z' };

interface Grade {
  ranges: { name: string; min: string; max: string }[];
}
/** What Karmada counts a free node for: the least of the grade that all of it reaches. */
function counted(models: Grade[], cpu: string, memory: string): [string, string] {
  const reached = models.filter(
    ({ ranges: [c, m] }) => parseCpu(c!.min) <= parseCpu(cpu) && parseBytes(m!.min) <= parseBytes(memory),
  );
  const [c, m] = reached.at(-1)!.ranges;
  return [c!.min, m!.min];
}

it('the namespace of Clusters enforces pod security level restricted', () => {
  expect(clusterNamespace().object.metadata.labels).toMatchObject({
    'pod-security.kubernetes.io/enforce': 'restricted',
  });
});

describe('the resource grades of a Karmada Cluster', () => {
  it.each<[string, HubAmounts[], [string, string], [string, string]]>([
    ['a small node counts in full', [{ cpu: '2', memory: '2Gi' }], ['2', '2Gi'], ['2', '2Gi']],
    ['half of it counts for half', [{ cpu: '2', memory: '2Gi' }], ['1', '1Gi'], ['1', '1Gi']],
    ['what is short of one resource counts by that', [{ cpu: '4', memory: '16Gi' }], ['4', '4Gi'], ['1', '4Gi']],
    ['one of odd size loses an eighth at most', [{ cpu: '4', memory: '8Gi' }], ['3900m', '8Gi'], ['3500m', '7Gi']],
    [
      'beside a larger kind the small one still counts in full',
      [
        { cpu: '8', memory: '32Gi' },
        { cpu: '2', memory: '8Gi' },
      ],
      ['2', '8Gi'],
      ['2', '8Gi'],
    ],
  ])('%s', (_, sizes, free, expected) => {
    expect(counted(resourceModels(sizes) as Grade[], ...free)).toEqual(expected);
    const [cpu, memory] = free;
    const what = { cpu: expected[0], memory: expected[1] };
    expect(karmadaHub.counts!(sizes, { type: 'Karmada' })({ cpu, memory, gpu: '1' })).toEqual({ ...what, gpu: '1' });
    // One that is newer than 1.17 finds no GPUs where grades do not name them.
    const newer: HubSpec = { type: 'Karmada', karmada: { renewsTokens: true } };
    expect(karmadaHub.counts!(sizes, newer)({ cpu, memory, gpu: '1' })).toEqual({ ...what, gpu: '0' });
  });

  it('are valid for Karmada with any node sizes', () => {
    for (const sizes of [
      [{ cpu: '10m', memory: '64Mi' }],
      [
        { cpu: '2', memory: '64Gi' },
        { cpu: '64', memory: '4Gi' },
      ],
      [
        { cpu: '2', memory: '8Gi' },
        { cpu: '4', memory: '8Gi' },
      ],
    ]) {
      const models = resourceModels(sizes) as Grade[];
      models.forEach(({ ranges }, grade) => {
        for (const [index, { min, max }] of ranges.entries()) {
          expect(min).toBe(grade === 0 ? '0' : models[grade - 1]!.ranges[index]!.max);
          expect(
            grade === models.length - 1 ? max : parseBytes(max) > parseBytes(min) || parseCpu(max) > parseCpu(min),
          ).toBe(grade === models.length - 1 ? '9223372036854775807' : true);
        }
      });
    }
  });
});

describe('the taints of a Karmada Cluster', () => {
  it.each<[string, Parameters<typeof karmadaTaints>, ReturnType<typeof karmadaTaints>]>([
    ['a new one is kept free', [[], 'Initializing', 'keep'], [initializing]],
    [
      "Karmada's own and people's stay as they stand",
      [[notReady, initializing, cordoned], 'Initializing', 'keep'],
      [notReady, initializing, cordoned],
    ],
    ['one that has joined is open', [[cordoned, initializing], undefined, 'keep'], [cordoned]],
    ['one that leaves is closed', [[cordoned], 'Leaving', 'keep'], [cordoned, leaving]],
    ['and drained', [[leaving], 'Leaving', 'begin'], [leaving, draining]],
    ['and open again, if it is to stay', [[cordoned, leaving, draining], undefined, 'keep'], [cordoned]],
    ['one that sleeps is closed', [[cordoned], 'Asleep', 'keep'], [cordoned, asleep]],
    ['and emptied', [[asleep], 'Asleep', 'begin'], [asleep, emptied]],
    ['and stays so until it has woken', [[asleep, emptied], 'Asleep', 'keep'], [asleep, emptied]],
    ['and then it is open', [[asleep, emptied], undefined, 'keep'], []],
    ['and stays so, with the time that Karmada gave it', [[leaving, since], 'Leaving', 'keep'], [leaving, since]],
  ])('%s', (_, given, expected) => expect(karmadaTaints(...given)).toEqual(expected));
});

const ready = { type: 'Ready', status: 'True' };
const live = (more: object = {}): KarmadaCluster =>
  ({ apiVersion: 'v1', kind: 'Cluster', metadata: { name: 'shop--demo' }, ...more }) as KarmadaCluster;

describe('a Karmada Cluster', () => {
  it.each<[string, KarmadaCluster | undefined, string | undefined]>([
    ['that is not there yet', undefined, 'has not looked'],
    ['that Karmada has not looked at', live(), 'has not looked'],
    [
      'that it does not reach',
      live({ status: { conditions: [{ type: 'Ready', status: 'False', message: 'cluster is not reachable' }] } }),
      'not reachable',
    ],
    [
      'whose taint is still there',
      live({ spec: { taints: [notReady] }, status: { conditions: [ready] } }),
      'not-ready',
    ],
    ['that is Ready', live({ status: { conditions: [ready] } }), undefined],
  ])('%s', (_, cluster, why) => {
    if (why === undefined) expect(whyNotReady('shop--demo', cluster)).toBeUndefined();
    else expect(whyNotReady('shop--demo', cluster)).toContain(why);
  });

  it('has a label with the counted capacity, whose change triggers the scheduler', () => {
    expect(offeredLabel(member, live())).toBeUndefined();
    expect(offeredLabel(member, live({ status: { resourceSummary: { allocatable: {} } } }))).toBeUndefined();
    const resourceSummary = {
      allocatable: { cpu: '3500m', memory: '8Gi', pods: '110' },
      allocated: { cpu: '1', memory: '1Gi' },
      allocating: { cpu: '500m' },
    };
    const cluster = live({ status: { resourceSummary } });
    expect(offeredLabel(member, cluster)).toBe('cpu-3500m.memory-8Gi');
    // Karmada has not counted by the present grades yet.
    const counted = (grades: number) =>
      live({
        metadata: { name: 'shop--demo', labels: { [`${GROUP}/offered`]: 'cpu-1.memory-1Gi' } },
        status: { resourceSummary: { ...resourceSummary, allocatableModelings: Array(grades).fill({}) } },
      });
    const label = (grades: number) => clusterObject(member, counted(grades), {}).metadata.labels?.[`${GROUP}/offered`];
    expect(label(17)).toBe('cpu-1.memory-1Gi');
    expect(label(9)).toBe('cpu-3500m.memory-8Gi.grades-9');
    expect(freeOn(cluster)).toEqual({ cpu: '2', memory: '7Gi' });
  });

  it('has a label that changes with new custom kinds, which triggers the scheduler', () => {
    const serving = (...kinds: [string, string][]) => {
      const apiEnablements = kinds.map(([groupVersion, kind]) => ({ groupVersion, resources: [{ kind }] }));
      return offeredLabel(member, live({ status: { resourceSummary: { allocatable: { cpu: '1' } }, apiEnablements } }));
    };
    const plain = serving(['apps/v1', 'Deployment'], ['gateway.networking.k8s.io/v1', 'Gateway']);
    expect(plain).toBe(serving());
    const jobs = serving(['batch.volcano.sh/v1alpha1', 'Job']);
    expect(jobs).toMatch(/^cpu-1\.memory-0\.apis-[0-9a-f]{8}$/);
    expect(serving(['batch.volcano.sh/v1alpha1', 'Queue'])).not.toBe(jobs);
  });
});

const spec: HubSpec = { type: 'Karmada' };
const member: Member = {
  name: 'shop--demo',
  hubName: 'prod',
  cluster: { namespace: 'shop', name: 'demo' },
  id: 'uid-of-kube-system',
  endpoint: { server: 'https://10.0.0.1', ca: 'PEM' },
  hub: { server: 'https://10.0.0.2' },
  labels: { [`${GROUP}/provider`]: 'aws', 'topology.kubernetes.io/region': 'eu-central-1' },
  zones: ['a', 'b'],
  capacity: { cpu: '2', memory: '2Gi' },
  nodeSizes: [{ cpu: '2', memory: '2Gi' }],
  answers: true,
  closed: 'Initializing',
  credentials: { controller: { token: 'one' }, impersonator: { token: 'two' } },
};
/** A hub that holds these, by kind. */
const hub = (held: Record<string, object[]>): Reader => ({
  get: async ({ kind }: Resource, name: string) =>
    (held[kind] as KubeObject[] | undefined)?.find(({ metadata }) => metadata.name === name),
  list: async ({ kind }: Resource) => (held[kind] ?? []) as KubeObject[],
  serves: async ({ kind }: Resource) => kind in held,
});
const observe = (held: Record<string, object[]>, one = member) => karmadaHub.observe(hub(held), undefined, one, spec);

describe('the Karmada hub', () => {
  it('reports a wrong API server', async () => {
    expect(await karmadaHub.validate(hub({ Cluster: [], ResourceBinding: [] }), spec)).toEqual([]);
    expect((await karmadaHub.validate(hub({}), spec)).join()).toContain("Karmada's own API server");
  });

  it('gives expiring tokens only to a Karmada that reads renewed ones', () => {
    const lives = (more: HubSpec['karmada']) =>
      karmadaHub.identities(member, { ...spec, karmada: more }).map(({ life }) => life);
    expect(lives(undefined)).toEqual(['forever', 'forever']);
    expect(lives({ renewsTokens: true })).toEqual([86400, 86400]);
  });

  it('gives the impersonator no rights of its own', () => {
    const { rules } = karmadaHub.identities(member, spec).find(({ name }) => name === 'impersonator')!;
    expect(rules.flatMap(({ verbs }) => verbs)).toEqual(['impersonate']);
  });

  it('joins no cluster that is registered under another name', async () => {
    const steps = karmadaHub.join(
      member,
      spec,
      await observe({ Cluster: [live({ metadata: { name: 'by-hand' }, spec: { id: member.id } })] }),
    );
    const registered = steps.find(({ type }) => type === 'Registered')!;
    expect(registered.waiting).toContain('by-hand');
    expect(registered.apply).toEqual([]);
  });

  it('does not take the namespace of a foreign Cluster for its own trace', async () => {
    const traces = async (metadata: object) => {
      const seen = await observe({ Cluster: [live({ metadata, spec: { id: member.id } })] });
      return karmadaHub.join(member, spec, seen).flatMap(({ traces: left = [] }) => left.map(({ name }) => name));
    };
    expect(await traces({ name: 'shop--demo' })).toEqual([]);
    expect(await traces({ name: 'shop--demo', labels: { [`${GROUP}/membership`]: 'uid' } })).toEqual([
      'karmada-es-shop--demo',
    ]);
  });

  it('sees placements on a leaving cluster, and those being evicted', async () => {
    const binding = (name: string, placed: object) => ({ metadata: { name, namespace: 'shop' }, spec: placed });
    const held = {
      Cluster: [live()],
      ResourceBinding: [
        binding('web', { clusters: [{ name: 'shop--demo' }] }),
        binding('other', { clusters: [{ name: 'shop--demo2' }] }),
      ],
      ClusterResourceBinding: [],
    };
    const one = { ...member, closed: 'Leaving' as const };
    const seen = await observe(held, one);
    expect(karmadaHub.placements?.(one, seen)).toEqual(['ResourceBinding shop/web']);
    expect(karmadaHub.drains(spec, seen)).toBe('None');
    expect(karmadaHub.drains({ ...spec, karmada: { evicts: true } }, seen)).toBe('Moves');
    held.ResourceBinding = [
      binding('web', { clusters: [{ name: 'b' }], gracefulEvictionTasks: [{ fromCluster: 'shop--demo' }] }),
    ];
    const later = await observe(held, one);
    expect(karmadaHub.placements?.(one, later)).toEqual(['ResourceBinding shop/web']);
    expect(karmadaHub.drains(spec, later)).toBe('Moves');
    // One that is to sleep is emptied as well.
    const sleepy = { ...member, closed: 'Asleep' as const };
    expect(karmadaHub.placements?.(sleepy, await observe(held, sleepy))).toEqual(['ResourceBinding shop/web']);
    expect(karmadaHub.placements?.(member, await observe(held))).toEqual([]);
  });
});
