import { expect, it } from 'vitest';
import { whyNoRoom } from '../../../operator/controllers/membership/room.ts';
import type { Pod } from '../../../operator/kube/resources.ts';
import { buildCloudProfile, buildPod, buildWorkerCluster } from '../../kit/builders/objects.ts';

const pod = (cpu: string, more: object = {}, spec: object = { nodeName: 'one' }) =>
  buildPod({
    metadata: { name: 'web', namespace: 'shop', ...more },
    spec: { ...spec, containers: [{ name: 'c', resources: { requests: { cpu, memory: '1Gi' } } }] },
  });
const member = (available: string, continuous = available, spec: object = {}) => ({
  cluster: buildWorkerCluster({
    spec,
    status: {
      admitted: { pools: [{ name: 'a', machineType: 'large' }] },
      resource: {
        total: { cpu: '8', memory: '64Gi', gpu: '0' },
        available: { cpu: available, memory: '64Gi', gpu: '0' },
        continuous: { cpu: continuous, memory: '32Gi', gpu: '0' },
      },
    },
  }),
  profile: buildCloudProfile({ spec: { machineTypes: [{ name: 'large', cpu: '8', memory: '32Gi' }] } }),
});

it.each<[string, Pod[], ReturnType<typeof member>[], string | undefined]>([
  ['no work needs no room', [], [], undefined],
  ['nobody else has no room', [pod('1')], [], 'have no room for the 1 CPU, 1Gi memory that pods'],
  ['the others together have room', [pod('2'), pod('2')], [member('2'), member('2')], undefined],
  ['they have too little', [pod('2'), pod('3')], [member('2'), member('2')], 'no room for the 5 CPU that pods'],
  [
    'what is there in pieces is of no use',
    [pod('3')],
    [member('4', '2'), member('4', '1')],
    'a pod here that requests 3 CPU',
  ],
  [
    'nodes that may still come count',
    [pod('7')],
    [member('0', '0', { pools: [{ name: 'a', maximum: 2 }] })],
    undefined,
  ],
  ['overdrawn clusters take nothing from the others', [pod('2')], [member('-3'), member('2')], undefined],
  [
    'what goes with its node, is done, waits or is of Kubernetes is no work',
    [
      pod('9', { ownerReferences: [{ kind: 'DaemonSet' }] }),
      pod('9', { namespace: 'kube-system' }),
      pod('9', { namespace: 'kueue-system' }),
      pod('9', { deletionTimestamp: '2026-11-22T12:00:00Z' }),
      pod('9', {}, {}),
      { ...pod('9'), status: { phase: 'Succeeded' } } as Pod,
    ],
    [],
    undefined,
  ],
])('%s', (_, pods, others, part) => {
  const said = whyNoRoom({ name: 'production', spec: {} }, pods, others);
  if (part === undefined) expect(said).toBeUndefined();
  else expect(said).toContain(part);
});

it('roomMessage is constant while the same room is needed', () => {
  const said = (free: string) => whyNoRoom({ name: 'production', spec: {} }, [pod('5')], [member(free)]);
  expect(said('1')).toBe(said('2'));
});
