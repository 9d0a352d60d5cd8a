import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Shoot } from '../../../operator/api/shoot.ts';
import { machinesOf } from '../../../operator/cli/commands/describe.ts';
import { main } from '../../../operator/cli/main.ts';
import {
  type ClusterDescription,
  describeTree,
  type MachineDescription,
  objectTree,
  TREE_HEADER,
} from '../../../operator/cli/render/describe.ts';
import { renderTree } from '../../../operator/cli/render/tree.ts';
import { createTerminal } from '../../../operator/cli/terminal.ts';
import { writeKubeconfigText } from '../../../operator/pki/kubeconfig.ts';
import { buildMembership } from '../../kit/builders/objects.ts';
import { SmallApiServer } from '../../kit/small-api-server.ts';
import { AGO, COST, cluster, condition, NOW, quota, READY, shoot } from './objects.ts';

const machine = (name: string, more: Partial<MachineDescription> = {}): MachineDescription => ({
  name,
  pool: 'worker',
  ready: 'True',
  reason: 'NodeReady',
  message: '',
  since: AGO,
  ...more,
});
const part = (name: string, ready = 1, desired = 1) => ({ name, ready, desired, since: AGO });
const draw = (picture: ClusterDescription, more: object = {}) =>
  renderTree(TREE_HEADER, describeTree(picture, { now: NOW, ...more }));

describe('describe', () => {
  it('shows a healthy cluster with all its parts', () => {
    const picture: ClusterDescription = {
      cluster: cluster('demo', {}, READY),
      shoot: shoot('demo', 2),
      controlPlane: [part('StatefulSet/etcd-main'), part('Deployment/kube-apiserver')],
      machines: [machine('machines-worker-10'), machine('machines-worker-2')],
      gaps: [],
    };
    expect(draw(picture)).toMatchInlineSnapshot(`
      [
        "NAME                                 REPLICAS   READY   REASON          SINCE   MESSAGE",
        "WorkerCluster/demo                              True    ClusterUsable   2m",
        "└─Shoot/demo (seed local)                       True    Created         2m",
        "  ├─ControlPlane                                True",
        "  │ ├─StatefulSet/etcd-main          1/1        True                    2m",
        "  │ └─Deployment/kube-apiserver      1/1        True                    2m",
        "  └─Workers                          2/2        True",
        "    └─Pool/worker                    2/2        True",
        "      ├─Machine/machines-worker-2               True    NodeReady       2m",
        "      └─Machine/machines-worker-10              True    NodeReady       2m",
      ]
    `);
  });

  it("shows the action for each condition that is not good, with the object's name", () => {
    const conditions = [
      condition('Ready', 'False', 'SeedFull', 'the seed is full'),
      condition('Expiring', 'True', 'EndIsNear', 'the cluster is deleted soon'),
      condition('SpecAccepted', 'True', 'Accepted', 'fine'),
      condition('ControlPlaneHealthy', 'False', 'SeedFull', 'no room'),
      condition('EveryNodeReady', 'False', 'OfAnotherVersion', 'unknown here'),
      condition(
        'NetworkPoliciesEnforced',
        'False',
        'NoEnforcement',
        'no effect. Install a network plugin that enforces them, or do not rely on them',
      ),
    ];
    const lines = draw({
      cluster: cluster('demo', {}, { ...READY, conditions }),
      controlPlane: [],
      machines: [],
      gaps: [],
    });
    const actions = lines.filter((line) => line.includes('To do'));
    expect(actions).toHaveLength(2);
    expect(actions[0]).toContain('Ask for fewer or smaller machines');
    expect(actions[1]).toContain('kubectl patch wc demo -n');
  });

  it('shows that the operator ignores a cluster, which its status does not say', () => {
    const left = shoot('demo', 2);
    left.metadata.annotations = { 'shoot.gardener.cloud/ignore': 'true' };
    const drawn = draw({ cluster: cluster('demo', {}, READY), shoot: left, controlPlane: [], machines: [], gaps: [] });
    expect(drawn[3]).toMatch(
      /─Ignored +the operator leaves this Shoot alone, .* annotation shoot.gardener.cloud\/ignore$/,
    );
  });

  it('shows the hubs of a cluster, and what they wait for', () => {
    const membership = (hub: string, status: object, more: object = {}) =>
      buildMembership({
        metadata: { name: `demo.${hub}`, namespace: 'shop', creationTimestamp: AGO, ...more },
        spec: { cluster: 'demo', hub },
        status,
      });
    const lines = draw({
      cluster: cluster('demo', {}, READY),
      memberships: [
        membership('inventory', { state: 'Joined', since: AGO, conditions: [condition('Ready', 'True', 'Joined')] }),
        membership(
          'production',
          { state: 'Joined', since: AGO, waiting: 'PlacementDecision shop/a' },
          { deletionTimestamp: AGO },
        ),
      ],
      controlPlane: [],
      machines: [],
      gaps: [],
    });
    expect(lines).toMatchInlineSnapshot(`
      [
        "NAME                 REPLICAS   READY     REASON          SINCE   MESSAGE",
        "WorkerCluster/demo              True      ClusterUsable   2m",
        "├─Hub/inventory                 True      Joined          2m",
        "└─Hub/production                Unknown   Leaving         2m      PlacementDecision shop/a",
      ]
    `);
  });

  it('shows control plane machines apart from worker machines', () => {
    const hosted = shoot('demo', 1);
    const own = { name: 'control-plane', minimum: 3, maximum: 3, machine: { type: 'm' }, controlPlane: {} };
    const workers = [own, ...(hosted.spec.provider.workers ?? [])];
    const lines = draw({
      cluster: cluster('demo', {}, READY),
      shoot: { ...hosted, spec: { ...hosted.spec, provider: { ...hosted.spec.provider, workers } } } as Shoot,
      controlPlane: [],
      machines: [machine('machines-control-plane-0', { pool: 'control-plane' }), machine('machines-worker-1')],
      gaps: [],
    });
    expect(lines.slice(3)).toMatchInlineSnapshot(`
      [
        "  ├─ControlPlane                         1/3        False                           2 not created yet",
        "  │ └─Machine/machines-control-plane-0              True    NodeReady       2m",
        "  └─Workers                              1/2        False",
        "    └─Pool/worker                        1/1        True",
        "      └─Machine/machines-worker-1                   True    NodeReady       2m",
      ]
    `);
  });

  it('warns about a cluster without a control plane', () => {
    const none = condition('NoControlPlane', 'True', 'NotRun', 'NO CONTROL PLANE: nothing answers');
    const objectsOnly = { ...READY, conditions: [condition('Ready', 'True', 'ObjectsOnly'), none] };
    const { status } = shoot('demo', 2);
    const workers = [{ name: 'worker', desired: 2, current: 2, ready: 2 }];
    const lines = draw({
      cluster: cluster('demo', {}, objectsOnly),
      shoot: { ...shoot('demo', 2), status: { ...status, conditions: objectsOnly.conditions, workers } } as Shoot,
      controlPlane: [],
      machines: [],
      gaps: [],
    });
    expect(lines.filter((line) => /─NO CONTROL PLANE +True +NotRun .*nothing answers$/.test(line))).toHaveLength(2);
    expect(lines.at(-1)).toMatch(/─Pool\/worker \(objects only\) +2\/2 +True$/);
  });

  it('shows address ranges and mesh identity', () => {
    const network = (networking: object) =>
      draw({ cluster: cluster('demo', {}, { ...READY, networking }), controlPlane: [], machines: [], gaps: [] });
    const ranges = { pods: '100.72.0.0/18', services: '100.72.64.0/20' };
    expect(network(ranges).at(-1)).toMatch(/─Network +pods 100\.72\.0\.0\/18; Services 100\.72\.64\.0\/20$/);
    const inMesh = { ...ranges, mesh: 'default', clusterID: 7, clusterName: 'shop--demo' };
    expect(network(inMesh).at(-1)).toMatch(/; id 7 in mesh default, as shop--demo$/);
  });

  it('shows costs, and that a simulated cluster is not billed', () => {
    const costs = (status: object) =>
      draw({
        cluster: cluster('demo', {}, { ...READY, cost: COST, ...status }),
        controlPlane: [],
        machines: [],
        gaps: [],
      })[2];
    expect(costs({})).toMatch(/─Cost +1\.1520 USD an hour, about 840\.96 USD a month, 35\.16 USD so far$/);
    expect(costs({ simulated: true })).toContain('nothing is billed; at the prices of the profile: 1.1520 USD an hour');
  });

  it('shows a quota, one metric per line', () => {
    const lines = renderTree(
      TREE_HEADER,
      objectTree(quota({ nodes: 7, 'cost.hourly': '60' }, { used: { nodes: '8' } }), { now: NOW }),
    );
    expect(lines.slice(2)).toEqual(['├─nodes         8/7', '└─cost.hourly   ?/60 USD']);
  });

  it('groups equal machines, and shows bad conditions and gaps', () => {
    const many = Array.from({ length: 5 }, (_, index) => machine(`m-${index}`));
    const picture: ClusterDescription = {
      cluster: cluster(
        'demo',
        {},
        {
          ...READY,
          nodes: { desired: 7, current: 6, ready: 5 },
          conditions: [
            condition('Ready', 'True', 'ClusterUsable'),
            condition('Simulated', 'True', 'NoCredentials', 'nothing is real'),
            condition('NodesReady', 'False', 'Missing', 'one node is late'),
            condition('Fine', 'True', 'AllGood'),
          ],
        },
      ),
      shoot: shoot('demo', 7),
      controlPlane: [],
      machines: [...many, machine('m-9', { ready: 'False', reason: 'Pending', message: 'no room' })],
      gaps: ['seed local: no answer in 3 s'],
    };
    expect(draw(picture)).toMatchInlineSnapshot(`
      [
        "NAME                        REPLICAS   READY     REASON          SINCE   MESSAGE",
        "WorkerCluster/demo                     True      ClusterUsable   2m",
        "├─SIMULATED                            True      NoCredentials   2m",
        "├─NodesReady                           False     Missing         2m      one node is late",
        "└─Shoot/demo (seed local)              True      Created         2m",
        "  ├─Workers                 5/7        False",
        "  │ └─Pool/worker           5/7        False                             1 not created yet",
        "  │   ├─5 Machines...                  True      NodeReady       2m      see m-0, m-1, m-2, ...",
        "  │   └─Machine/m-9                    False     Pending         2m      no room",
        "  └─not seen                           Unknown                           seed local: no answer in 3 s",
      ]
    `);
    const all = draw(picture, { allConditions: true, grouping: false });
    expect(all.filter((line) => line.includes('Machine/'))).toHaveLength(6);
    expect(all.some((line) => line.includes('Fine'))).toBe(true);
  });
});

it('shows a sentence once when condition and cluster both have it', () => {
  const refused = 'spec.region: there is no region mars-1';
  const picture: ClusterDescription = {
    cluster: cluster(
      'demo',
      {},
      {
        observedGeneration: 1,
        conditions: [
          condition('Ready', 'False', 'ConfigurationProblem', refused),
          condition('SpecAccepted', 'False', 'ConfigurationProblem', refused),
        ],
      },
    ),
    controlPlane: [],
    machines: [],
    gaps: [],
  };
  expect(draw(picture).filter((line) => line.includes(refused))).toEqual([expect.stringContaining('SpecAccepted')]);
});

describe('machines', () => {
  const pool = { 'multi-cluster.demo.io/pool': 'worker' };
  it('pair pods with nodes of the same name, and include nodes without pods', () => {
    const pod = (name: string, status: object) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, labels: pool },
      status,
    });
    const node = (name: string, status: string, labels = {}) => ({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, labels },
      status: { conditions: [{ type: 'Ready', status, reason: 'KubeletNotReady', message: 'no network' }] },
    });
    const found = machinesOf(
      [pod('a', { phase: 'Running' }), pod('b', { phase: 'Pending' })],
      [node('a', 'False'), node('sim-1', 'True', pool)],
    );
    expect(found.map(({ name, pool: of, ready, reason, message }) => [name, of, ready, reason, message])).toEqual([
      ['a', 'worker', 'False', 'KubeletNotReady', 'no network'],
      ['b', 'worker', 'False', 'Pending', 'the machine has not registered its node yet'],
      ['sim-1', 'worker', 'True', 'NodeReady', ''],
    ]);
  });
});

it('describe does not read nodes of an attached cluster that the operator refuses', async () => {
  const garden = await SmallApiServer.start('garden');
  const folder = await mkdtemp(join(tmpdir(), 'coppice-describe-'));
  const file = join(folder, 'garden.yaml');
  const path = '/apis/multi-cluster.demo.io/v1/namespaces/default/workerclusters/demo';
  const attached = { kubeconfigSecretRef: { name: 'theirs' } };
  const described = async (available: 'True' | 'False') => {
    const conditions = [condition('APIServerAvailable', available, 'OtherCluster', 'it is another cluster')];
    const status = { ...READY, shootRef: undefined, kubeconfigRef: { name: 'theirs' }, conditions };
    garden.put(path, cluster('demo', { attached } as object, status as object) as never);
    let out = '';
    const stream = { isTTY: false, columns: 300, write: (text: string) => (out += text) };
    const terminal = createTerminal({ out: stream, err: stream, env: {} });
    await main(['describe', 'demo', '--kubeconfig', file], terminal, {}, new AbortController().signal);
    return out;
  };
  try {
    await writeFile(file, garden.kubeconfig);
    // The cluster of its Secret answers, whichever it is.
    garden.put('/api/v1/namespaces/default/secrets/theirs', {
      metadata: { name: 'theirs', namespace: 'default' },
      data: { kubeconfig: Buffer.from(garden.kubeconfig).toString('base64') },
    } as object as never);
    garden.put('/api/v1/nodes/one', { metadata: { name: 'one' } });
    expect(await described('True')).toContain('Machine/one');
    expect(await described('False')).toMatch(/^(?![\s\S]*Machine)[\s\S]*APIServerAvailable .*it is another cluster/);
  } finally {
    await garden.stop();
    await rm(folder, { recursive: true, force: true });
  }
});

describe('a cluster whose API server does not answer', () => {
  it('does not start the garden that holds it', async () => {
    const garden = await SmallApiServer.start('garden');
    const folder = await mkdtemp(join(tmpdir(), 'coppice-describe-'));
    const file = join(folder, 'garden.yaml');
    try {
      await writeFile(file, garden.kubeconfig);
      const attached = { kubeconfigSecretRef: { name: 'theirs' } };
      const status = { ...READY, shootRef: undefined, kubeconfigRef: { name: 'theirs' } };
      garden.put(
        '/apis/multi-cluster.demo.io/v1/namespaces/default/workerclusters/demo',
        cluster('demo', { attached } as object, status as object),
      );
      const closed = writeKubeconfigText({
        server: 'https://127.0.0.1:1',
        ca: garden.ca,
        token: 't',
        name: 'c',
        user: 'u',
      });
      garden.put('/api/v1/namespaces/default/secrets/theirs', {
        metadata: { name: 'theirs', namespace: 'default' },
        data: { kubeconfig: Buffer.from(closed).toString('base64') },
      } as object as never);
      let out = '';
      const stream = { isTTY: false, columns: 300, write: (text: string) => (out += text) };
      const terminal = createTerminal({ out: stream, err: stream, env: {} });
      await main(['describe', 'demo', '--kubeconfig', file], terminal, {}, new AbortController().signal);
      expect(out).toMatch(/not seen .*the cluster's own API server: .*ECONNREFUSED/);
      expect(out).not.toContain('coppice up');
    } finally {
      await garden.stop();
      await rm(folder, { recursive: true, force: true });
    }
  });
});
