import { dump, load } from 'js-yaml';
import { beforeEach, describe, expect, it } from 'vitest';
import { LABELS, ROLES } from '../../../operator/api/group.ts';
import type { Secret, StatefulSet } from '../../../operator/kube/resources.ts';
import type { ControlPlaneBootstrap } from '../../../providers/contract.ts';
import { controlPlaneMachines } from '../../../providers/local/control-plane.ts';
import { local } from '../../../providers/local/index.ts';
import { context, FakeCluster, pool } from './fixtures.ts';

const STATEFULSET = 'StatefulSet/shoot--team--one/machines-control-plane';
const SECRET = 'Secret/shoot--team--one/pool-control-plane';
const controlPlanePool = (count = 1) =>
  pool({
    name: 'control-plane',
    count,
    taints: [{ key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' }],
  });
const labels = { [LABELS.shoot]: 'one', [LABELS.pool]: 'control-plane', [LABELS.role]: ROLES.controlPlaneMachine };
const bootstrap = (changes: Partial<ControlPlaneBootstrap> = {}): ControlPlaneBootstrap => ({
  keys: { 'ca.crt': 'CA', 'etcd/ca.crt': 'ETCD CA' },
  init: 'INIT\n',
  join: 'JOIN\n',
  addresses: ['10.1.0.20'],
  mayInitialise: true,
  noted: [],
  ...changes,
});

describe('the local machines of a control plane', () => {
  let seed: FakeCluster;
  let ctx: ReturnType<typeof context>;
  beforeEach(() => {
    seed = new FakeCluster();
    ctx = context({ seed: seed.client });
  });
  const files = () =>
    Object.fromEntries(
      Object.entries(seed.get<Secret>(SECRET).data ?? {}).map(([key, value]) => [
        key,
        Buffer.from(value, 'base64').toString(),
      ]),
    );

  it('are the StatefulSet in the golden file', async () => {
    await controlPlaneMachines.reconcile(ctx, controlPlanePool(), bootstrap());
    const { metadata, ...object } = seed.get<StatefulSet>(STATEFULSET);
    const { name, namespace, labels } = metadata;
    const text = dump({ ...object, metadata: { name, namespace, labels } }, { lineWidth: -1, noRefs: true });
    await expect(text).toMatchFileSnapshot('golden/local/control-plane.yaml');
  });

  it("get kubeadm's files, and whether they may initialize a cluster", async () => {
    await controlPlaneMachines.reconcile(ctx, controlPlanePool(), bootstrap());
    expect(files()).toMatchObject({
      'ca.crt': 'CA',
      'etcd-ca.crt': 'ETCD CA',
      'kubeadm-init.yaml': 'INIT\n',
      'kubeadm-join.yaml': 'JOIN\n',
      'control-plane.env':
        "MEMBER_ADDRESSES='10.1.0.20'\nMAY_INITIALISE='yes'\nNOTED=''\nENCRYPTION_REVISION='0'\nCERTIFICATE_DAYS='60'\n",
    });
    expect(load(files()['kubelet.yaml']!)).toMatchObject({
      staticPodPath: '/etc/kubernetes/manifests',
      healthzPort: 10248,
      registerWithTaints: [{ key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' }],
    });
    await controlPlaneMachines.reconcile(ctx, controlPlanePool(), bootstrap({ mayInitialise: false, noted: [0, 2] }));
    expect(files()['control-plane.env']).toContain("MAY_INITIALISE='no'\nNOTED='0 2'\n");
  });

  it('are not replaced for changed files, and each keeps /var', async () => {
    await controlPlaneMachines.reconcile(ctx, controlPlanePool(), bootstrap());
    const before = structuredClone(seed.get<StatefulSet>(STATEFULSET).spec);
    await controlPlaneMachines.reconcile(
      ctx,
      controlPlanePool(2),
      bootstrap({ addresses: ['10.1.0.20', '10.1.0.21'] }),
    );
    const { spec } = seed.get<StatefulSet>(STATEFULSET);
    expect(spec).toEqual({ ...before, replicas: 2 });
    expect(spec.updateStrategy).toEqual({ type: 'OnDelete' });
    expect(spec.volumeClaimTemplates[0].metadata.name).toBe('var');
    expect(spec.template.spec.containers[0].volumeMounts).toContainEqual({ name: 'var', mountPath: '/var' });
    expect(spec.template.spec.volumes.map(({ name }: { name: string }) => name)).not.toContain('var');
  });

  it('are outdated after a change of encryption keys, and get the revision to wait for', async () => {
    const put = (ordinal: number, env: object[]) =>
      seed.put({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: `machines-control-plane-${ordinal}`, namespace: 'shoot--team--one', labels },
        spec: {
          containers: [
            { name: 'machine', image: `coppice.local/control-plane-machine:v${ctx.kubernetesVersion}`, env },
          ],
        },
      });
    const outdated = async () =>
      (await controlPlaneMachines.observe(ctx, 'control-plane')).machines.map((machine) => machine.outdated === true);
    const told = async () => {
      await controlPlaneMachines.reconcile(ctx, controlPlanePool(), bootstrap());
      return seed.get<StatefulSet>(STATEFULSET).spec.template.spec.containers[0].env;
    };
    // As long as keys have never changed, nobody says anything of them: so it is of machines from before there were others.
    expect(await told()).toBeUndefined();
    put(0, []);
    expect(await outdated()).toEqual([false]);
    ctx = context({ seed: seed.client, encryptionRevision: 2 });
    const env = await told();
    expect(env).toEqual([{ name: 'WANTED_ENCRYPTION_REVISION', value: '2' }]);
    expect(files()['control-plane.env']).toContain("ENCRYPTION_REVISION='2'\n");
    put(1, env);
    expect(await outdated()).toEqual([true, false]);
    for (const ordinal of [0, 1]) await controlPlaneMachines.replace(ctx, 'control-plane', ordinal);
    expect(seed.names('Pod')).toEqual(['machines-control-plane-1']);
  });

  describe('with another version', () => {
    const put = (ordinal: number, version: string) =>
      seed.put({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: {
          name: `machines-control-plane-${ordinal}`,
          namespace: 'shoot--team--one',
          labels: { ...labels, app: 'kube-apiserver' },
        },
        spec: { containers: [{ name: 'machine', image: `coppice.local/control-plane-machine:v${version}` }] },
      });
    const seen = async () =>
      (await controlPlaneMachines.observe(ctx, 'control-plane')).machines.map(
        ({ name, outdated = false, closed = false }) => [name.at(-1), outdated, closed],
      );
    beforeEach(() => {
      put(0, '1.35.4');
      put(1, ctx.kubernetesVersion);
    });

    it('are outdated, unless the seed sets the machine image', async () => {
      expect(await seen()).toEqual([
        ['0', true, false],
        ['1', false, false],
      ]);
      ctx = context({ seed: seed.client, machineImage: 'kindest/node:v1.36.3' });
      expect((await seen()).map(([, outdated]) => outdated)).toEqual([false, false]);
    });

    it('get no new requests once closed', async () => {
      await controlPlaneMachines.close(ctx, 'control-plane', 0);
      await controlPlaneMachines.close(ctx, 'control-plane', 7);
      expect((await seen()).map(([, , closed]) => closed)).toEqual([true, false]);
    });

    it('are replaced by deletion of their pods, and others stay', async () => {
      for (const ordinal of [0, 1, 7]) await controlPlaneMachines.replace(ctx, 'control-plane', ordinal);
      expect(seed.names('Pod')).toEqual(['machines-control-plane-1']);
    });
  });

  it('cause no write without changes', async () => {
    await controlPlaneMachines.reconcile(ctx, controlPlanePool(), bootstrap());
    seed.writes = [];
    await controlPlaneMachines.reconcile(ctx, controlPlanePool(), bootstrap());
    expect(seed.writes).toEqual([]);
  });

  it('are not listed as workload machines, which would be removed as surplus', async () => {
    const object = (kind: string, name: string) => ({
      apiVersion: 'v1',
      kind,
      metadata: { name, namespace: 'shoot--team--one', labels },
      spec: { containers: [] },
    });
    await controlPlaneMachines.reconcile(ctx, controlPlanePool(), bootstrap());
    seed.put(object('Pod', 'machines-control-plane-0'));
    seed.put(object('PersistentVolumeClaim', 'var-machines-control-plane-0'));
    expect(await local.listMachines(ctx)).toEqual([]);
    const seen = await controlPlaneMachines.observe(ctx, 'control-plane');
    expect(seen).toMatchObject({
      asked: 1,
      volumes: [{ ordinal: 0, uid: expect.any(String) }],
      machines: [{ name: 'machines-control-plane-0' }],
    });
    await controlPlaneMachines.delete(ctx, 'control-plane');
    for (const kind of ['StatefulSet', 'Secret', 'PersistentVolumeClaim']) expect(seed.names(kind)).toEqual([]);
  });
});
