import { load } from 'js-yaml';
import { expect, it } from 'vitest';
import { findCondition } from '../../../operator/api/conditions.ts';
import { LABELS } from '../../../operator/api/group.ts';
import { say } from '../../../operator/controllers/conditions.ts';
import { poolsOfShoot } from '../../../operator/controllers/shoot/pools.ts';
import { runningStatus } from '../../../operator/controllers/shoot/status/running-status.ts';
import { withoutStartupTaints } from '../../../operator/controllers/startup-taints.ts';
import type { KubeTaint, Node } from '../../../operator/kube/resources.ts';
import type { Machine } from '../../../providers/contract.ts';
import { machineFiles } from '../../../providers/local/machine-files.ts';
import { simulated } from '../../../providers/simulated/index.ts';
import { buildNode, buildPod, buildShoot } from '../../kit/builders/objects.ts';
import { context, FakeCluster, pool } from '../providers/fixtures.ts';

const agent = { key: 'node.cilium.io/agent-not-ready', value: 'true', effect: 'NoExecute' as const };
const batch = { key: 'batch', value: 'only', effect: 'NoSchedule' as const };
const web = pool({ count: 1, taints: [batch], startupTaints: [agent] });

it('a Shoot passes startup taints to its provider beside permanent ones', () => {
  const worker = {
    name: 'web',
    machine: { type: 'a' },
    minimum: 1,
    maximum: 1,
    taints: [batch],
    startupTaints: [agent],
  };
  const shoot = buildShoot({ metadata: { name: 'one' }, spec: { provider: { workers: [worker] } } });
  expect(poolsOfShoot(shoot)[0]).toMatchObject({ taints: [batch], startupTaints: [agent] });
});

it('a local machine registers with both kinds of taints, and no startup taint recreates a machine', () => {
  const { files, fingerprint } = machineFiles(context(), web);
  expect(load(files['kubelet.yaml']!)).toMatchObject({ registerWithTaints: [batch, agent] });
  expect(machineFiles(context(), pool({ count: 1 })).fingerprint).toBe(fingerprint);
});

it('a simulated node gets back a removed pool taint, and never a startup taint', async () => {
  const shoot = new FakeCluster();
  const reconcile = () => simulated.reconcilePool(context({ shoot: shoot.client }), web);
  await reconcile();
  const node = () => shoot.get<Node>(`Node/${shoot.names('Node')[0]}`);
  expect(node().spec.taints).toEqual([batch, agent]);
  node().spec.taints = [];
  await reconcile();
  expect(node().spec.taints).toEqual([batch]);
  shoot.writes = [];
  await reconcile();
  expect(shoot.writes).toEqual([]);
});

const node = (taints: KubeTaint[], labels: Record<string, string> = { [LABELS.pool]: web.name }) =>
  buildNode({
    metadata: { name: 'a', labels },
    spec: { taints },
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  });

it('a node with a startup taint counts as without it, and foreign taints stay', () => {
  const seen = (labels?: Record<string, string>) =>
    withoutStartupTaints(node([batch, agent], labels), [web]).spec.taints;
  expect(seen()).toEqual([batch]);
  expect(seen({ [LABELS.alternativeOf]: web.name })).toEqual([batch]);
  expect(seen({ [LABELS.pool]: 'other' })).toEqual([batch, agent]);
  const other = { ...agent, effect: 'NoSchedule' };
  expect(withoutStartupTaints(node([other]), [web]).spec.taints).toEqual([other]);
});

it('a cluster whose nodes wait for an agent reports that until the taint is gone', () => {
  const told = (taints: KubeTaint[], dnsReady: boolean) => {
    const dns = buildPod({
      metadata: { labels: { 'k8s-app': 'kube-dns' } },
      status: { conditions: [{ type: 'Ready', status: dnsReady ? 'True' : 'False' }] },
    });
    const machine = { name: 'a', nodeName: 'a', pool: web.name, phase: 'Running', ready: true } as Machine;
    const facts = {
      shoot: buildShoot({ metadata: { name: 'one', generation: 1 }, spec: { provider: {} } }),
      technicalID: 'shoot--team--one',
      seedName: 'local',
      version: '1.36.3',
      endpoint: undefined,
      pools: [web],
      operation: undefined,
      errors: [],
      observedGeneration: 1,
      usable: { ok: true, message: 'works' },
      inside: { nodes: [node(taints)], pods: [dns], machines: [machine] },
      draining: [],
    };
    const healthy = say('ControlPlaneHealthy', true, 'AllReady', 'all');
    const { conditions } = runningStatus(facts, { healthy, desired: 1, ready: 1, resource: undefined }, new Date(0));
    return ['SystemComponentsHealthy', 'EveryNodeReady', 'Ready'].map(
      (type) => findCondition(conditions, type)?.message,
    );
  };
  const waits = '1 node waits until an agent takes away startup taint node.cilium.io/agent-not-ready';
  expect(told([agent], false)).toEqual([
    `cluster DNS is not ready yet (1 pods): ${waits}`,
    `the node is Ready; ${waits}`,
    `cluster DNS is not ready yet (1 pods): ${waits}`,
  ]);
  expect(told([], true)).toEqual([
    'cluster DNS serves',
    'the node is Ready',
    'the control plane serves, all nodes are Ready',
  ]);
});
