import type { Draw } from '../draw.ts';
import { BOUND, type CaseClaim, type CaseNode, type CasePod, type CaseVolume, SUBJECT } from './case.ts';
import type { Drawn } from './on-one-node.ts';

const ZONE = 'topology.kubernetes.io/zone';
const BETA_ZONE = 'failure-domain.beta.kubernetes.io/zone';
const REGION = 'topology.kubernetes.io/region';
const DRIVER = 'csi.example.com';

const bound = (volumeName: string, more: Partial<CaseClaim> = {}): CaseClaim => ({
  annotations: { [BOUND]: 'yes' },
  spec: { volumeName, storageClassName: 'fast' },
  phase: 'Bound',
  ...more,
});

const mounts = (...claims: string[]): NonNullable<CasePod['spec']> => ({
  volumes: claims.map((claimName, index) => ({ name: `v${index}`, persistentVolumeClaim: { claimName } })),
});

const inZones = (key: string, ...values: string[]) => ({
  nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [{ key, operator: 'In', values }] }] } },
});

const nodeIn = ({ pick, chance }: Draw): CaseNode => ({
  labels: {
    ...(chance(0.8) && { [ZONE]: pick(['a', 'a', 'b']) }),
    ...(chance(0.15) && { [BETA_ZONE]: pick(['a', 'b']) }),
    ...(chance(0.2) && { [REGION]: 'r' }),
  },
});

/** A volume that is there, in a zone by its affinity or its labels. */
function boundVolume(choose: Draw): Drawn {
  const { pick, chance } = choose;
  const byLabels = chance(0.6);
  return {
    nodes: [nodeIn(choose)],
    claims: { data: bound('pv') },
    volumes: {
      pv: {
        ...(byLabels && {
          labels: {
            [pick([ZONE, BETA_ZONE])]: pick(['a', 'a', 'a__b', 'b__c']),
            ...(chance(0.3) && { [REGION]: pick(['r', 's']) }),
          },
        }),
        spec: {
          ...((!byLabels || chance(0.3)) &&
            pick([
              inZones(ZONE, 'a'),
              inZones(ZONE, 'a', 'c'),
              inZones('kubernetes.io/hostname', pick(['n0', 'gone'])),
            ])),
        },
      },
    },
    pod: { spec: mounts('data') },
  };
}

/** A claim that is not bound: whether somebody makes it a volume, and where. */
function unbound(choose: Draw): Drawn {
  const { pick, chance } = choose;
  const hasClass = chance(0.9);
  const topologies = pick([
    [],
    [],
    [{ key: ZONE, values: ['a'] }],
    [{ key: ZONE, values: ['a', 'b'] }],
    [
      { key: ZONE, values: ['b'] },
      { key: REGION, values: ['r'] },
    ],
  ]);
  return {
    nodes: [nodeIn(choose)],
    claims: {
      data: {
        spec: { ...(hasClass && { storageClassName: chance(0.93) ? 'late' : 'missing' }) },
        phase: 'Pending',
        ...(chance(0.3) && { annotations: { 'volume.kubernetes.io/selected-node': pick(['n0', 'n0', 'gone']) } }),
      },
    },
    classes: {
      late: {
        volumeBindingMode: chance(0.8) ? 'WaitForFirstConsumer' : 'Immediate',
        ...(topologies.length > 0 && {
          allowedTopologies: chance(0.2)
            ? topologies.map((one) => ({ matchLabelExpressions: [one] }))
            : [{ matchLabelExpressions: topologies }],
        }),
        ...(chance(0.06) && { provisioner: 'kubernetes.io/no-provisioner' }),
      },
    },
    ...(chance(0.06) && { drivers: { [DRIVER]: { storageCapacity: true } } }),
    pod: { spec: mounts('data') },
  };
}

/** A claim that nothing can be done with, or that only looks like it. */
function broken(choose: Draw): Drawn {
  const { pick, chance } = choose;
  const kind = pick(['missing', 'lost', 'deleting', 'no volume', 'not completed', 'ephemeral', 'in tree']);
  const claims: Record<string, CaseClaim> = { data: bound('pv') };
  if (kind === 'missing') delete claims.data;
  if (kind === 'lost') claims.data = bound('gone', { phase: 'Lost' });
  if (kind === 'deleting') claims.data!.terminating = chance(0.7);
  if (kind === 'no volume') claims.data = bound('gone');
  if (kind === 'not completed') delete claims.data!.annotations;
  const volumes: Record<string, CaseVolume> = { pv: {} };
  if (kind === 'in tree')
    volumes.pv = { labels: { [ZONE]: 'a' }, spec: { gcePersistentDisk: { pdName: 'disk' }, ...inZones(ZONE, 'a') } };
  if (kind !== 'ephemeral') return { nodes: [nodeIn(choose)], claims, volumes, pod: { spec: mounts('data') } };
  const state = pick(['owned', 'owned', 'of another', 'missing']);
  const template = { spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } } };
  return {
    nodes: [nodeIn(choose)],
    ...(state !== 'missing' && { claims: { [`${SUBJECT}-data`]: bound('pv', { ofPod: state === 'owned' }) } }),
    volumes: { pv: { spec: { ...(chance(0.5) && inZones(ZONE, 'a')) } } },
    pod: { spec: { volumes: [{ name: 'data', ephemeral: { volumeClaimTemplate: template } }] } },
  };
}

/** A claim for one pod alone, and others that use it, or only one of that name. */
function alone({ pick, chance, integer }: Draw): Drawn {
  const spec = { volumeName: 'pv', accessModes: [pick(['ReadWriteOncePod', 'ReadWriteOncePod', 'ReadWriteOnce'])] };
  const namespace = chance(0.25) ? 'team-b' : 'team-a';
  return {
    nodes: [{}, {}],
    pods: chance(0.85) ? [{ on: `n${integer(0, 1)}`, namespace, spec: mounts('data'), terminating: chance(0.2) }] : [],
    claims: { data: bound('pv', { spec }) },
    volumes: { pv: { spec: { accessModes: spec.accessModes } } },
    pod: { spec: mounts('data') },
  };
}

/** NodeVolumeLimits: volumes of pods, and those that are attached still; one that is shared counts once. */
function limits(choose: Draw): Drawn {
  const { pick, chance, many, integer, some } = choose;
  const names = ['a', 'b', 'c', 'd', 'e'];
  const other = 'other.example.com';
  const volumes = Object.fromEntries(
    names.map((name) => [
      `pv-${name}`,
      {
        spec: {
          csi: {
            driver: name === 'e' ? other : DRIVER,
            volumeHandle: name === 'd' && chance(0.3) ? 'pv-a' : `pv-${name}`,
          },
          accessModes: ['ReadWriteMany'],
        },
      },
    ]),
  );
  const claims: Record<string, CaseClaim> = Object.fromEntries(names.map((name) => [name, bound(`pv-${name}`)]));
  if (chance(0.3)) claims.c = { spec: { storageClassName: 'late' }, phase: 'Pending' };
  const wanted = some(names, 0.4);
  return {
    nodes: [{ ...(chance(0.9) && { limits: { [DRIVER]: integer(1, 4), ...(chance(0.3) && { [other]: 1 }) } }) }],
    pods: many(integer(0, 3), () => ({ on: 'n0', spec: mounts(...some(names, 0.4)) })),
    claims,
    volumes,
    classes: { late: { volumeBindingMode: 'WaitForFirstConsumer' } },
    attached: Object.fromEntries(some(['pv-a', 'pv-b', 'pv-d'], 0.25).map((name) => [name, 0])),
    pod: { spec: mounts(...(wanted.length > 0 ? wanted : [pick(names)])) },
  };
}

export function volumes(choose: Draw): Drawn {
  const kind = choose.pick([boundVolume, boundVolume, unbound, unbound, broken, alone, limits, limits]);
  return kind(choose);
}
