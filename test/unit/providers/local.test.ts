import { dump, load } from 'js-yaml';
import { beforeEach, describe, expect, it } from 'vitest';
import { LABELS, ROLES } from '../../../operator/api/group.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import type { Node, Pod, ReplicaSet, Secret } from '../../../operator/kube/resources.ts';
import { local } from '../../../providers/local/index.ts';
import { machineOf } from '../../../providers/local/machine.ts';
import { machineFiles } from '../../../providers/local/machine-files.ts';
import { machineImageFiles } from '../../../providers/local/machine-image.ts';
import { poolReplicaSet } from '../../../providers/local/machine-pod.ts';
import { context, FakeCluster, pool } from './fixtures.ts';

const REPLICASET = 'ReplicaSet/shoot--team--one/machines-workers';
const SECRET = 'Secret/shoot--team--one/pool-workers';

const machinePod = (name: string, changes: { deleting?: boolean; phase?: string; pool?: string } = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name,
    namespace: 'shoot--team--one',
    labels: { [LABELS.shoot]: 'one', [LABELS.role]: ROLES.machine, [LABELS.pool]: changes.pool ?? 'workers' },
    ...(changes.deleting && { deletionTimestamp: '2026-01-01T00:00:00Z' }),
  },
  spec: { containers: [] },
  status: { phase: changes.phase ?? 'Running', podIP: '10.2.0.7', conditions: [{ type: 'Ready', status: 'True' }] },
});

const node = (name: string, labels: Record<string, string> = {}): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, labels: { [LABELS.pool]: 'workers', ...labels } },
  spec: {},
});

describe('the files of a local machine', () => {
  const { files } = machineFiles(context(), pool({ labels: { 'node-role.kubernetes.io/x': '', team: "o'hara" } }));

  it.each([
    'containerd.toml',
    'cni.template',
    'kubelet.yaml',
    'kube-proxy.yaml',
    'machine.env',
    'pool.env',
    'certs.d/_default/hosts.toml',
  ])('include %s as in the golden file', async (path) => {
    await expect(files[path]).toMatchFileSnapshot(`golden/local/${path.split('/').at(-1)}`);
  });

  it('reserve the fraction of a core that a machine type lacks', () => {
    const { files: odd } = machineFiles(context(), pool({ machineType: 'odd' }));
    expect(odd['machine.env']).toContain("CPU_CORES='2'");
    expect(odd['machine.env']).toContain("MEMORY_KIB='1048576'");
    expect(load(odd['kubelet.yaml']!)).toMatchObject({ systemReserved: { cpu: '500m' }, maxPods: 20 });
  });

  it('leave labels that a kubelet may not set to the operator', () => {
    expect(files['pool.env']).not.toContain('node-role');
    expect(files['pool.env']).toContain("team=o'\\''hara");
  });

  it('change the pod only for another version, type or network', () => {
    const print = (ctx = {}, changes = {}) => machineFiles(context(ctx), pool(changes)).fingerprint;
    // Machines of before are told of the authority, and are not replaced for it.
    const ca = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';
    const secure = { imageMirror: 'https://10.2.0.2:5000', imageMirrorCA: ca };
    expect(print(secure)).toBe(print());
    const hosts = machineFiles(context(secure), pool()).files['certs.d/_default/hosts.toml'];
    expect(hosts).toContain('[host."https://10.2.0.2:5000"]');
    expect(hosts).toContain('ca = "/etc/coppice/certs.d/_default/hosts.toml"');
    expect(hosts).toContain(ca.trim());
    const before = print();
    expect(print({}, { labels: { a: 'b' }, taints: [{ key: 'a', effect: 'NoSchedule' }], count: 9 })).toBe(before);
    expect(print({ clusterCA: 'NEW\n' })).toBe(before);
    expect(print({}, { machineType: 'odd' })).not.toBe(before);
    expect(print({ vni: 5 })).not.toBe(before);
  });
});

describe('the pod of a local machine', () => {
  const replicaSet = (ctx = context()) =>
    poolReplicaSet(
      ctx,
      pool(),
      { files: { 'machine.sh': '', 'certs.d/_default/hosts.toml': '' }, fingerprint: 'F' },
      {
        labels: {},
        taints: [],
      },
    );

  it('is the ReplicaSet in the golden file', async () => {
    await expect(dump(replicaSet(), { lineWidth: -1, noRefs: true })).toMatchFileSnapshot(
      'golden/local/replicaset.yaml',
    );
  });

  it('mounts only modules of the host when the image is complete', () => {
    const { spec } = replicaSet(context({ machineImage: 'kindest/node:v1.36.1' })).spec.template;
    expect(spec.containers[0].image).toBe('kindest/node:v1.36.1');
    const folders = spec.volumes.flatMap((volume: any) => volume.hostPath?.path ?? []);
    expect(folders).toEqual(['/lib/modules']);
  });
});

describe('the image of a local machine', () => {
  it('contains what the host lacks in /usr', () => {
    const files = machineImageFiles({
      kubelet: '/cache/kubelet-1.36.3/kubelet',
      kubeProxy: '/cache/kube-proxy-1.36.3/kube-proxy',
      runc: '/usr/local/sbin/runc',
      cni: '/usr/lib/cni',
      cniPlugins: ['ptp'],
      images: ['/cache/images/pause.tar'],
    });
    expect(files.map((file) => file.path)).toEqual([
      '/opt/coppice/bin/kubelet',
      '/opt/coppice/bin/kube-proxy',
      '/opt/coppice/bin/runc',
      '/opt/coppice/images/pause.tar',
    ]);
  });
});

describe('the local provider', () => {
  let seed: FakeCluster;
  let shoot: FakeCluster;
  const ctx = () => context({ seed: seed.client, shoot: shoot.client });
  const replicaSet = () => seed.get<ReplicaSet>(REPLICASET);

  beforeEach(() => {
    seed = new FakeCluster();
    shoot = new FakeCluster();
  });

  it('creates a Secret and a ReplicaSet once', async () => {
    await local.reconcilePool(ctx(), pool());
    expect(seed.writes).toEqual(['apply Secret pool-workers', 'apply ReplicaSet machines-workers']);
    expect(replicaSet().spec.replicas).toBe(2);
    const secret = seed.get<Secret>(SECRET);
    expect(Buffer.from(secret.data!['bootstrap.kubeconfig']!, 'base64').toString()).toBe('bootstrap of workers');
    await local.reconcilePool(ctx(), pool());
    expect(seed.writes).toHaveLength(2);
    expect(shoot.writes).toEqual([]);
  });

  it.each([
    ['loaded', `sha256:${'0'.repeat(64)}`],
    ['pulled', `registry.example/machine@sha256:${'0'.repeat(64)}`],
  ])(
    'restarts a machine whose image was %s under alternating image names, and replaces it by deletion of its pod',
    async (_, id) => {
      await local.reconcilePool(ctx(), pool());
      const image = replicaSet().spec.template.spec.containers[0].image;
      const running = machinePod('a');
      const containerStatuses = [{ name: 'machine', ready: true, restartCount: 0, imageID: id }];
      const spec = { containers: [{ name: 'machine', image }] };
      seed.put({ ...running, spec, status: { ...running.status, containerStatuses } } as Pod);
      const pod = () => seed.get<Pod>('Pod/shoot--team--one/a');
      const images: string[] = [];
      for (let again = 0; again < 3; again++) {
        await local.repair!.restart(ctx(), machineOf(pod()));
        images.push(pod().spec.containers[0]!.image!);
      }
      expect(images).toEqual([id, image, id]);
      await local.repair!.replace(ctx(), machineOf(pod()));
      expect(seed.names('Pod')).toEqual([]);
      await local.repair!.restart(ctx(), machineOf(running));
      await local.repair!.replace(ctx(), machineOf(running));
    },
  );

  it('grows pools, and leaves shrinking to removeMachines', async () => {
    await local.reconcilePool(ctx(), pool({ count: 3 }));
    for (const name of ['a', 'b', 'c']) seed.put(machinePod(name));
    await local.reconcilePool(ctx(), pool({ count: 5 }));
    expect(replicaSet().spec.replicas).toBe(5);
    await local.reconcilePool(ctx(), pool({ count: 1 }));
    expect(replicaSet().spec.replicas).toBe(3);
  });

  it('deletes machines that have not started without asking the cluster, and keeps running ones', async () => {
    await local.reconcilePool(ctx(), pool({ count: 400 }));
    for (const name of ['a', 'b', 'c']) seed.put(machinePod(name));
    for (const name of ['d', 'e']) seed.put(machinePod(name, { phase: 'Pending' }));
    const withoutCluster = context({ seed: seed.client });
    await local.withdrawMachines!(withoutCluster, [pool({ count: 2 })]);
    expect(replicaSet().spec.replicas).toBe(3);
    seed.writes = [];
    await local.withdrawMachines!(withoutCluster, [pool({ count: 2 })]);
    expect(seed.writes).toEqual([]);
  });

  it('keeps running machines on shrinking, and deletes those not started', async () => {
    await local.reconcilePool(ctx(), pool({ count: 400 }));
    for (const name of ['a', 'b', 'c']) seed.put(machinePod(name));
    for (const name of ['d', 'e']) seed.put(machinePod(name, { phase: 'Pending' }));
    await local.reconcilePool(ctx(), pool({ count: 2 }));
    expect(replicaSet().spec.replicas).toBe(3);
  });

  it('lists machines from a cache without any call', async () => {
    await local.reconcilePool(ctx(), pool());
    const by = (...pods: Pod[]) => ({ ...ctx(), seen: { pods, nodes: [] } });
    expect(await local.listMachines(by(machinePod('a')))).toMatchObject([{ name: 'a' }]);
    const etcd = { ...machinePod('etcd'), metadata: { name: 'etcd', namespace: 'shoot--team--one', labels: {} } };
    const elsewhere = machinePod('b');
    elsewhere.metadata.namespace = 'of-a-tenant';
    const silent = { list: () => Promise.reject(new Error('nobody is to be asked')) } as unknown as KubeClient;
    expect(await local.listMachines({ ...by(etcd, elsewhere), seed: silent })).toEqual([]);
  });

  it('reports outdated machines, and adds surge machines while they are replaced', async () => {
    const made = (name: string) => {
      const { spec } = replicaSet();
      const pod = machinePod(name);
      seed.put({ ...pod, metadata: { ...pod.metadata, annotations: spec.template.metadata.annotations } });
    };
    await local.reconcilePool(ctx(), pool());
    made('a');
    made('b');
    const outdated = async () => (await local.listMachines(ctx())).map(({ name, outdated }) => [name, outdated]);
    await local.reconcilePool(ctx(), pool({ labels: { team: 't' }, maxSurge: 1 }));
    expect([replicaSet().spec.replicas, await outdated()]).toEqual([
      2,
      [
        ['a', undefined],
        ['b', undefined],
      ],
    ]);
    await local.reconcilePool(ctx(), pool({ machineType: 'odd' }));
    expect([replicaSet().spec.replicas, await outdated()]).toEqual([
      2,
      [
        ['a', true],
        ['b', true],
      ],
    ]);
    await local.reconcilePool(ctx(), pool({ machineType: 'odd', maxSurge: 1 }));
    expect(replicaSet().spec.replicas).toBe(3);
    made('c');
    expect(await outdated()).toEqual([
      ['a', true],
      ['b', true],
      ['c', undefined],
    ]);
  });

  it('removes exactly the named machines', async () => {
    await local.reconcilePool(ctx(), pool({ count: 3 }));
    for (const name of ['a', 'b', 'c']) seed.put(machinePod(name));
    await local.removeMachines(ctx(), 'workers', ['b'], 2);
    const costs = ['a', 'b', 'c'].map((name) => seed.get(`Pod/shoot--team--one/${name}`).metadata.annotations);
    expect(costs).toEqual([undefined, { 'controller.kubernetes.io/pod-deletion-cost': '-1000' }, undefined]);
    expect(replicaSet().spec.replicas).toBe(2);

    // The ReplicaSet took another one, that was not running: the named one goes all the same.
    seed.put({ ...replicaSet(), status: { observedGeneration: replicaSet().metadata.generation, replicas: 2 } });
    seed.objects.delete('Pod/shoot--team--one/c');
    await local.removeMachines(ctx(), 'workers', ['b'], 2);
    expect(seed.names('Pod')).toEqual(['a']);
    seed.writes = [];
    await local.removeMachines(ctx(), 'workers', ['b'], 2);
    expect(seed.writes).toEqual([]);
  });

  it('removes the named machines even if the ReplicaSet would prefer one that is not Ready', async () => {
    await local.reconcilePool(ctx(), pool({ count: 3 }));
    for (const name of ['a', 'b']) seed.put(machinePod(name));
    const starting = machinePod('c', { phase: 'Pending' });
    seed.put({ ...starting, status: { phase: 'Pending' } });
    await local.removeMachines(ctx(), 'workers', ['a'], 2);
    expect(seed.names('Pod')).toEqual(['b', 'c']);
    expect(replicaSet().spec.replicas).toBe(2);
  });

  it('removes a machine whose pod has failed', async () => {
    await local.reconcilePool(ctx(), pool({ count: 2 }));
    seed.put(machinePod('a'));
    seed.put(machinePod('failed', { phase: 'Failed' }));
    await local.removeMachines(ctx(), 'workers', ['failed'], 1);
    expect(seed.names('Pod')).toEqual(['a']);
  });

  it('deletes nodes without machine, and updates labels and taints of the others', async () => {
    await local.reconcilePool(ctx(), pool({ labels: { old: 'x' } }));
    seed.put(machinePod('a'));
    const labels = { 'node.kubernetes.io/instance-type': 'm', 'topology.kubernetes.io/region': 'north' };
    shoot.put(node('a', { ...labels, old: 'x', own: 'y' }));
    shoot.put(node('gone'));
    await local.reconcilePool(ctx(), pool({ labels: { team: 't' }, taints: [{ key: 'k', effect: 'NoSchedule' }] }));
    expect(shoot.names('Node')).toEqual(['a']);
    expect(shoot.get('Node/a').metadata.labels).toEqual({ [LABELS.pool]: 'workers', ...labels, own: 'y', team: 't' });
    expect(shoot.get<Node>('Node/a').spec.taints).toEqual([{ key: 'k', effect: 'NoSchedule' }]);
    await local.reconcilePool(ctx(), pool());
    expect(shoot.get<Node>('Node/a').spec.taints).toEqual([]);
    expect(shoot.get('Node/a').metadata.labels).not.toHaveProperty('team');
  });

  it('remembers the labels of nodes while the cluster is unreachable', async () => {
    await local.reconcilePool(ctx(), pool({ labels: { team: 't' } }));
    seed.put(machinePod('a'));
    shoot.put(node('a', { team: 't' }));
    await local.reconcilePool(context({ seed: seed.client }), pool());
    await local.reconcilePool(ctx(), pool());
    expect(shoot.get('Node/a').metadata.labels).not.toHaveProperty('team');
  });

  it('deletes a pool with all its objects', async () => {
    await local.reconcilePool(ctx(), pool());
    await local.reconcilePool(ctx(), pool({ name: 'more' }));
    await local.deletePool(ctx(), 'more');
    expect(seed.names('ReplicaSet')).toEqual(['machines-workers']);
    await local.deleteAll(context({ seed: seed.client }));
    expect([...seed.objects.keys()]).toEqual([]);
    await local.deletePool(ctx(), 'workers');
  });

  it.each([
    [machinePod('a'), 'Running', true],
    [machinePod('a', { deleting: true }), 'Terminating', false],
    [machinePod('a', { phase: 'Failed' }), 'Failed', true],
    [machinePod('a', { phase: 'Pending' }), 'Pending', true],
  ] as const)('returns the phase of machine %#', (pod, phase, ready) => {
    expect(machineOf(pod)).toMatchObject({
      name: 'a',
      nodeName: 'a',
      pool: 'workers',
      address: '10.2.0.7',
      phase,
      ready,
    });
  });

  it('reports a machine that cannot start as Failed', () => {
    const pod = machinePod('a', { phase: 'Pending' });
    pod.status!.containerStatuses = [
      { name: 'machine', ready: false, restartCount: 0, state: { waiting: { reason: 'ImagePullBackOff' } } },
    ];
    expect(machineOf(pod).phase).toBe('Failed');
  });
});
