import { describe, expect, it } from 'vitest';
import { findCondition } from '../../../operator/api/conditions.ts';
import type { LastError } from '../../../operator/api/meta.ts';
import type { CommonFacts } from '../../../operator/controllers/shoot/status/facts.ts';
import { statusOfKept } from '../../../operator/controllers/shoot/without-control-plane/status.ts';
import type { Machine, MachinePhase, MachinesSeen } from '../../../providers/contract.ts';
import { buildNode, buildShoot } from '../../kit/builders/objects.ts';
import { pool } from '../providers/fixtures.ts';

const NOW = new Date('2026-11-21T00:00:00Z');
const PODS = '100.96.0.0/11';

const machine = (name: string, ready = true, phase: MachinePhase = ready ? 'Running' : 'Pending'): Machine => ({
  name,
  pool: 'workers',
  nodeName: name,
  phase,
  ready,
  createdAt: '2026-11-21T00:00:00Z',
});
const node = (name: string, status = 'True') =>
  buildNode({
    metadata: { name },
    status: { allocatable: { cpu: '2', memory: '8Gi' }, conditions: [{ type: 'Ready', status }] },
  });
const record = (changes: Partial<MachinesSeen> = {}): MachinesSeen => ({
  controlPlane: [machine('control-plane.0')],
  machines: [machine('a'), machine('b')],
  nodes: [node('a'), node('b')],
  ...changes,
});
const shoot = buildShoot({
  metadata: { name: 'one', namespace: 'team', uid: 'u', generation: 2 },
  spec: { cloudProfile: { name: 'paper' }, region: 'north', kubernetes: {}, provider: { type: 'simulated' } },
});

const facts: CommonFacts = {
  shoot,
  technicalID: 'shoot--team--one',
  seedName: 'local',
  version: '1.36.3',
  endpoint: 'https://x.no-api-server.invalid:6443',
  pools: [pool()],
  operation: undefined,
  errors: [],
  observedGeneration: 2,
};
const status = (changes: Partial<MachinesSeen> = {}, observedGeneration = 2, errors: LastError[] = [], pods = PODS) =>
  statusOfKept({ ...facts, errors, observedGeneration }, record(changes), pods, NOW);
const ready = (found: ReturnType<typeof status>) => findCondition(found.conditions, 'Ready');

describe('the status of a shoot that exists as objects only', () => {
  it('reports that a domain is stored only, without an API server', () => {
    const named = { ...shoot, spec: { ...shoot.spec, dns: { domain: 'x.example' } } };
    const { conditions } = statusOfKept({ ...facts, shoot: named }, record(), PODS, NOW);
    expect(findCondition(conditions, 'AllFieldsActedOn')?.message).toContain('dns.domain');
  });

  it('is Ready with a message that cannot be mistaken for a cluster', () => {
    const { conditions } = status();
    expect(findCondition(conditions, 'Ready')).toMatchObject({ status: 'True', reason: 'ObjectsOnly' });
    expect(findCondition(conditions, 'NoControlPlane')).toMatchObject({ status: 'True', reason: 'NotRun' });
    for (const type of ['Ready', 'NoControlPlane']) {
      expect(findCondition(conditions, type)?.message).toMatch(
        /^NO CONTROL PLANE: CloudProfile paper .*Nothing answers behind the kubeconfig/,
      );
    }
    expect(findCondition(conditions, 'APIServerAvailable')).toMatchObject({ status: 'False', reason: 'NotRun' });
    expect(conditions?.some(({ type }) => type === 'ControlPlaneHealthy')).toBe(false);
  });

  it('counts what the machines would have', () => {
    expect(status()).toMatchObject({
      controlPlane: { desired: 1, ready: 1 },
      nodes: { desired: 2, current: 2, ready: 2 },
      workers: [{ name: 'workers', desired: 2, current: 2, ready: 2 }],
      resource: {
        total: { cpu: '4', memory: '16Gi', gpu: '0', ipPool: '506' },
        continuous: { cpu: '2', memory: '8Gi', gpu: '0', ipPool: '253' },
      },
    });
  });

  it('gives no pod addresses to nodes beyond the range', () => {
    expect(status({}, 2, [], '100.96.0.0/24').resource?.total?.ipPool).toBe('253');
  });

  const error: LastError = { taskID: 'machines', description: 'sold out', codes: ['ERR_INFRA_RESOURCES_DEPLETED'] };
  it.each<[string, Partial<MachinesSeen>, number, LastError[], string, RegExp]>([
    ['while a machine is on its way', { machines: [machine('a'), machine('b', false)] }, 2, [], 'NotReady', /1 of 2/],
    ['while one is missing', { machines: [machine('a')] }, 2, [], 'ScalingOut', /1 of 2/],
    ['while the control plane would not serve yet', { controlPlane: [machine('c', false)] }, 2, [], 'Reconciling', /./],
    ['while objects of an older spec are stored', {}, 1, [], 'Reconciling', /./],
    ['when the cloud gives no more', { machines: [machine('a')] }, 2, [error], 'OperationFailed', /sold out/],
    [
      'when one was lost',
      { machines: [machine('a'), machine('b', false, 'Terminating')] },
      2,
      [],
      'ScalingOut',
      /1 of 2/,
    ],
  ])('is not Ready %s', (_when, changes, observed, errors, reason, message) => {
    const found = ready(status(changes, observed, errors));
    expect(found).toMatchObject({ status: 'False', reason });
    expect(found?.message).toMatch(message);
  });
});
