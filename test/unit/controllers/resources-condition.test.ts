import { describe, expect, it } from 'vitest';
import { findCondition } from '../../../operator/api/conditions.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { resourcesCondition } from '../../../operator/controllers/resources-condition.ts';
import { hostedShootStatus, type ShootFacts } from '../../../operator/controllers/shoot/hosted/hosted-status.ts';
import { planAttached } from '../../../operator/controllers/workercluster/attached.ts';
import { hosted } from '../../../operator/controllers/workercluster/hosted.ts';
import type { SizedView } from '../../../operator/controllers/workercluster/view.ts';
import type { Pod } from '../../../operator/kube/resources.ts';
import { buildNode, buildPod, buildShoot, buildWorkerCluster } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';

const NOW = new Date('2026-11-28T12:00:00Z');
const node = buildNode({
  metadata: { name: 'a' },
  status: { allocatable: { cpu: '4', memory: '8Gi' }, conditions: [{ type: 'Ready', status: 'True' }] },
});
const pod = (name: string, memory: string) =>
  buildPod({
    metadata: { name, namespace: 'default' },
    spec: { nodeName: 'a', containers: [{ name: 'c', resources: { requests: { memory } } }] },
    status: { phase: 'Running' },
  });
const HUGE = [pod('huge', '64Pi'), pod('web', '1Gi')];

/** status of a hosted cluster with these pods on its node. */
function hostedWith(pods: Pod[]) {
  const facts = partOf<ShootFacts>({
    shoot: buildShoot({ metadata: { name: 'one', uid: 'u', generation: 1 }, spec: { provider: {} } }),
    technicalID: 'shoot--team--one',
    seedName: 'local',
    version: '1.36.3',
    pools: [],
    errors: [],
    usable: { ok: true, message: 'works' },
    inside: { nodes: [node], pods, machines: [] },
    draining: [],
  });
  return hostedShootStatus(facts, NOW);
}

/** status of an attached cluster with these pods on its node. */
function attachedWith(pods: Pod[], before?: WorkerCluster['status']) {
  const cluster = buildWorkerCluster({
    metadata: { name: 'demo', namespace: 'shop', generation: 1 },
    spec: { mode: 'Attached', attached: {} },
    status: before,
  });
  const facts = { generation: 1, refusal: undefined, server: 'https://theirs', inside: { nodes: [node], pods } };
  return planAttached({ cluster, facts, holds: [] }, NOW).status;
}

describe('a cluster with a pod that requests 64Pi', () => {
  it.each([
    ['hosted', hostedWith],
    ['attached', attachedWith],
  ])('has a status that goes on (%s), and a condition that names the pod', (_mode, statusWith) => {
    const status = statusWith(HUGE);
    expect(status.resource?.available).toMatchObject({ cpu: '4', memory: '0' });
    const condition = findCondition(status.conditions, 'ResourcesCounted');
    expect(condition).toMatchObject({ status: 'False', reason: 'AmountTooLarge' });
    expect(condition?.message).toContain('Pod default/huge');
    expect(condition?.message).not.toContain('web');
  });

  it.each([
    ['hosted', hostedWith],
    ['attached', attachedWith],
  ])('has no such condition once the amount is corrected (%s)', (_mode, statusWith) => {
    const status = statusWith([pod('huge', '64Mi')]);
    expect(findCondition(status.conditions, 'ResourcesCounted')).toBeUndefined();
    expect(status.resource?.available?.memory).toBe('8128Mi');
  });

  it('has the condition of its Shoot, word for word', () => {
    const shoot = buildShoot({ metadata: { generation: 1 }, status: hostedWith(HUGE) });
    const { conditions } = hosted.observe(partOf<SizedView>({ cluster: { metadata: {}, spec: {} }, shoot }));
    expect(conditions.find((one) => one?.type === 'ResourcesCounted')?.message).toContain('Pod default/huge');
  });

  it('keeps the condition until a restarted operator has looked', () => {
    const before = attachedWith(HUGE);
    const cluster = buildWorkerCluster({ metadata: {}, spec: { attached: {} }, status: before });
    const { status } = planAttached({ cluster, facts: undefined, holds: [] }, NOW);
    expect(findCondition(status.conditions, 'ResourcesCounted')?.status).toBe('False');
  });
});

it('resourcesCondition names three at most, and truncates long names', () => {
  const many = Array.from({ length: 5000 }, (_, index) => `Pod default/${'x'.repeat(5000)}${index}`);
  const message = resourcesCondition(many)?.message ?? '';
  expect(message).toContain('and 4997 more');
  expect(message.length).toBeLessThan(700);
});
