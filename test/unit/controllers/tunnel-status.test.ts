import { expect, it } from 'vitest';
import { findCondition } from '../../../operator/api/conditions.ts';
import { hostedShootStatus } from '../../../operator/controllers/shoot/hosted/hosted-status.ts';
import type { Pod } from '../../../operator/kube/resources.ts';
import { buildPod, buildShoot } from '../../kit/builders/objects.ts';
import { pool } from '../providers/fixtures.ts';

const pod = (app: string, ready: boolean, more: object = {}) =>
  buildPod({
    metadata: { name: `${app}-x`, namespace: 'kube-system', labels: { 'k8s-app': app }, ...more },
    spec: { containers: [] },
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
  });
const dns = pod('kube-dns', true);
const agent = 'konnectivity-agent';

const system = (pods: Pod[], tunnel?: boolean, nothingRuns?: boolean) => {
  const shoot = buildShoot({ metadata: { name: 'one', generation: 1 }, spec: { provider: { type: 'aws' } } });
  const status = hostedShootStatus(
    {
      shoot,
      technicalID: 'shoot--team--one',
      seedName: 'far',
      version: '1.36.3',
      endpoint: 'https://203.0.113.10:6443',
      pools: [pool({ count: 1 })],
      operation: undefined,
      errors: [],
      observedGeneration: 1,
      usable: { ok: true, message: 'works' },
      inside: { nodes: [], pods, machines: [] },
      tunnel,
      nothingRuns,
      draining: [],
      etcd: undefined,
      apiServer: undefined,
      controllerManager: undefined,
      scheduler: undefined,
    },
    new Date('2026-11-21T00:00:00Z'),
  );
  const { reason, message } = findCondition(status.conditions, 'SystemComponentsHealthy')!;
  return [reason, message];
};

it.each<[string, Pod[], boolean | undefined, string, string]>([
  ['there is none, and none is needed', [dns], undefined, 'Healthy', 'cluster DNS serves'],
  ['an agent is connected', [dns, pod(agent, true)], true, 'Healthy', 'the tunnel from the API server is open'],
  [
    'no agent is connected',
    [dns, pod(agent, false)],
    true,
    'TunnelDown',
    'connected to an API server (1 pods). kubectl',
  ],
  ['the last one goes', [dns, pod(agent, true, { deletionTimestamp: 'now' })], true, 'TunnelDown', '(0 pods)'],
  ['DNS does not serve either', [pod(agent, false)], true, 'NotReady', 'cluster DNS is not ready yet'],
])('the condition of the tunnel when %s', (_, pods, tunnel, reason, message) => {
  expect(system(pods, tunnel)).toEqual([reason, expect.stringContaining(message)]);
});

it("the tunnel's status of simulated nodes says that nothing runs on them", () => {
  expect(system([dns], undefined, true)).toEqual(['Simulated', expect.stringContaining('run no pods')]);
});
