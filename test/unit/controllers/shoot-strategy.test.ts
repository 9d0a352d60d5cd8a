import { describe, expect, it } from 'vitest';
import { findCondition } from '../../../operator/api/conditions.ts';
import type { Shoot } from '../../../operator/api/shoot.ts';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import { newShootState } from '../../../operator/controllers/shoot/state.ts';
import { commonFacts, statusOf } from '../../../operator/controllers/shoot/status.ts';
import { strategyOf } from '../../../operator/controllers/shoot/strategy.ts';
import { Flow } from '../../../operator/flow/graph.ts';
import type { RecordedClusters } from '../../../providers/contract.ts';
import { pool } from '../providers/fixtures.ts';
import { controlPlane } from '../shoot/values.ts';

/** An operation on a shoot of which the seed has these objects. */
function operation(
  isRecorded: boolean,
  inSeed: { etcd?: boolean; apiServer?: boolean; pods?: number } = {},
): Operation {
  const has = (wanted: string, is = false) => ({
    get: (key: string) => (is && key === `shoot--shop--demo/${wanted}` ? {} : undefined),
  });
  return {
    recorded: isRecorded ? ({} as RecordedClusters) : undefined,
    values: controlPlane(),
    pools: [pool()],
    names: [],
    state: newShootState(),
    provider: {},
    shoot: { metadata: { name: 'demo', namespace: 'shop' } },
    seed: {
      statefulSets: has('etcd-main', inSeed.etcd),
      deployments: has('kube-apiserver', inSeed.apiServer),
      podsOf: (key: string) => (key === 'shop/demo' ? Array(inSeed.pods ?? 0).fill({}) : []),
    },
  } as unknown as Operation;
}
const onMachines = (): Operation => ({ ...operation(false), controlPlanePool: pool({ name: 'own' }) });
const ids = (op: Operation) =>
  strategyOf(op)
    .reconcileTasks(op)
    .map(({ id }) => id);
const deletionIds = (op: Operation) =>
  strategyOf(op)
    .deletionTasks(op)
    .map(({ id }) => id);

describe('what is acted on', () => {
  it.each([
    ['in an account of a cloud', true, undefined],
    ['in the seed', undefined, 'credentialsBindingName'],
  ])('depends on where the machines are: %s', (_where, inCloud, unacted) => {
    const op = { ...operation(false), provider: { inCloud }, seed: { name: 'local' } } as unknown as Operation;
    const shoot = { metadata: { name: 'demo' }, spec: { credentialsBindingName: 'keys', provider: {} } } as Shoot;
    const seen = { controlPlane: { desired: 1, ready: 1 }, machines: [], readyMachines: [] };
    const { conditions } = statusOf(commonFacts(op, shoot, undefined), seen, [], new Date(0));
    const said = findCondition(conditions, 'AllFieldsActedOn')?.message;
    expect(said).toEqual(unacted && expect.stringContaining(unacted));
  });
});

describe('what stands behind a shoot', () => {
  it('is a control plane, or a record of machines where the profile says so', () => {
    expect(ids(operation(false))).toContain('api-server');
    expect(ids(operation(true))).toEqual(['namespace', 'certificates', 'kubeconfig', 'record', 'machines-ready']);
  });

  it.each([
    ['etcd', { etcd: true }],
    ['the API server', { apiServer: true }],
    ['a pod on its way out', { pods: 1 }],
  ])('stays a control plane as long as there is %s, whatever the profile says by now', (_what, inSeed) => {
    expect(ids(operation(true, inSeed))).toContain('api-server');
    // Its processes are waited for, or a cluster would be gone that still runs.
    expect(deletionIds(operation(true, inSeed))).toContain('processes');
  });

  it('is machines of the cluster itself where it has a pool for that', () => {
    const found = ids(onMachines());
    expect(found).toContain('control-plane-machines');
    expect(found).not.toContain('etcd');
    // Nobody is let in before it is noted that the cluster has begun.
    const access = strategyOf(onMachines())
      .reconcileTasks(onMachines())
      .find(({ id }) => id === 'access');
    expect(access?.after).toEqual(['initialised']);
  });

  it('asks for a graph that can be run', () => {
    for (const op of [operation(true), operation(false), onMachines()]) {
      expect(() => new Flow('make', strategyOf(op).reconcileTasks(op))).not.toThrow();
      expect(() => new Flow('delete', strategyOf(op).deletionTasks(op))).not.toThrow();
    }
  });
});
