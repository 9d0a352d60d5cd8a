import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { findCondition } from '../../operator/api/conditions.ts';
import { ANNOTATIONS, API_VERSION, LABELS } from '../../operator/api/group.ts';
import { CONTROL_PLANE_WORKER } from '../../operator/api/names.ts';
import type { Shoot } from '../../operator/api/shoot.ts';
import { ROTATE } from '../../operator/controllers/shoot/operation-request.ts';
import type { KubeClient } from '../../operator/kube/client.ts';
import {
  CONFIGMAPS,
  type ConfigMap,
  conditionIsTrue,
  type Node,
  SECRETS,
  SHOOTS,
} from '../../operator/kube/resources.ts';
import { CERTIFICATES_HERE, expectShortLived } from '../kit/certificates.ts';
import type { Account, FakeCloud } from '../kit/cloud/index.ts';
import { expectEncrypted, SAID, SECRET_URL, writeForDisk } from '../kit/etcd-disk.ts';
import {
  clusterClient,
  e2e,
  endAll,
  gardenClient,
  giveUp,
  kubeconfigFile,
  kubectl,
  type Name,
  ok,
  PATIENCE_MS,
  until,
  untilReady,
} from '../kit/garden.ts';
import { apply, type CloudTestbed, selfManagedTestbed } from '../kit/machines/cloud-testbed.ts';
import { COLD_MS, whyNoMachineImage } from '../kit/machines/image.ts';
import { machinesCache, type RealMachines } from '../kit/machines/real-machines.ts';
import { rotates } from '../kit/rotation.ts';
import { timed } from '../kit/timed.ts';
import { run, untilNodes, untilPods } from '../kit/workload.ts';

const NAMESPACE = 'own-machines';
const REGION = 'eu-central-1';
const own: Name = { name: 'own', namespace: NAMESPACE };
const GOOGLE_REGION = 'europe-west3';
const atGoogle: Name = { name: 'own', namespace: 'own-at-google' };
/** Engine runs, a machine that boots and installs itself, and kubeadm, on two busy cores. */
const BEGIN_MS = 12 * 60_000;

const why = await whyNoMachineImage(machinesCache());
if (why !== undefined) console.warn(`e2e: machines of clouds are not booted here: ${why}`);

/** The other half of the turns of hosted-in-a-cloud.test.ts. */
const booted = why === undefined ? e2e : e2e.skip;
const describeAWS = rotates(booted, { of: 4, turns: [1, 3] });
const describeGoogle = rotates(booted, { of: 4, turns: [0, 2] });

const isReady = (node: Node) => conditionIsTrue(node, 'Ready');
const nameOf = ({ metadata }: Node) => metadata.name;
const isOwn = ({ metadata }: Node) => metadata.labels?.[LABELS.pool] === CONTROL_PLANE_WORKER;

const wanted = (metadata: Name, cloudProvider: string) => ({
  apiVersion: API_VERSION,
  kind: 'WorkerCluster',
  metadata,
  spec: {
    cloudProvider,
    mode: 'SelfManaged',
    controlPlaneNodes: 1,
    credentialsRef: { name: 'keys' },
    dataPlaneNodes: 1,
  },
});

const resize = async ({ name, namespace }: Name, controlPlaneNodes: number) => {
  const patch = JSON.stringify({ spec: { controlPlaneNodes } });
  ok(await kubectl(['patch', 'workercluster', name, '-n', namespace, '--type=merge', '-p', patch]));
};

/** There is no kubectl on machines. */
const READ_HERE = `umask 077; cd "$(mktemp -d)"
for one in certificate key; do sed -n "s/.*client-$one-data: //p" /etc/kubernetes/admin.conf | base64 -d >$one; done
curl -sS --cacert /etc/kubernetes/pki/ca.crt --cert certificate --key key https://127.0.0.1:6443${SECRET_URL}`;

/** Expects that a machine has that Secret encrypted on its disk, and that its own API server reads it. */
async function expectSecretAt(machines: RealMachines, name: string): Promise<void> {
  const machine = machines.machine(name);
  await expectEncrypted((command) =>
    machine.run(command).then(
      () => true,
      () => false,
    ),
  );
  expect(await machine.run(['bash', '-c', READ_HERE])).toContain(SAID);
}

describeAWS('a self-managed cluster whose machines boot in a cloud', () => {
  let cloud: FakeCloud;
  let account: Account;
  let machines: RealMachines;
  let endpoint: string;
  let cluster: KubeClient;
  const atEnd: (() => Promise<unknown>)[] = [];

  beforeAll(async () => {
    ({ cloud, account, machines, endpoint } = await selfManagedTestbed(atEnd, {
      name: 'aws',
      region: REGION,
      cluster: own,
    }));
  }, COLD_MS);

  afterAll(async () => {
    // What a test that failed has left goes with its cloud.
    atEnd.push(() => giveUp(own));
    await endAll(atEnd);
  });

  afterEach(async ({ task }) => {
    if (task.result?.state === 'fail' && machines) console.warn(await machines.journals());
  });

  it(
    'becomes Ready from kubectl apply, by kubeadm on a machine that got nothing but user data',
    async () => {
      await apply(wanted(own, 'aws'));
      const found = await timed('Ready', () => untilReady(own, BEGIN_MS));
      expect(found.status).toMatchObject({
        mode: 'SelfManaged',
        simulated: false,
        endpoint,
        controlPlane: { desired: 1, ready: 1 },
        nodes: { desired: 1, ready: 1 },
      });
      cluster = await clusterClient(own);
      const nodes = await untilNodes(cluster, (all) => all.filter(isReady).length === 2, 'to be two and Ready');
      expect(nodes.map(nameOf).sort()).toEqual((await cloud.instances(account, REGION)).map(({ id }) => id).sort());
      const [first] = nodes.filter(isOwn);
      expect(first!.metadata.labels).toHaveProperty('node-role.kubernetes.io/control-plane');
      await machines.machine(nameOf(first!)).run(['test', '-s', '/etc/kubernetes/pki/ca.key']);
      await cluster.apply({ ...mark, data: { said: 'before' } } as never, { fieldManager: 'coppice-e2e' });
      await writeForDisk(cluster);
      await expectSecretAt(machines, nameOf(first!));
      const certificates = await machines.machine(nameOf(first!)).run(['bash', '-c', CERTIFICATES_HERE]);
      expect(expectShortLived(certificates)).toBeGreaterThan(10);
    },
    BEGIN_MS,
  );

  const mark = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'mark', namespace: 'default' } };

  it('runs workloads on the other machines, and serves their logs', async () => {
    const [pod] = await run(cluster, { name: 'echo' });
    const [worker] = (await untilNodes(cluster, (all) => all.length === 2, 'to be two')).filter((one) => !isOwn(one));
    expect(pod!.spec.nodeName).toBe(nameOf(worker!));
    const kubeconfig = await kubeconfigFile(own);
    const said = () =>
      kubectl(['exec', 'deploy/echo', '--', '/usr/local/bin/echo', 'get', 'https://kubernetes.default.svc/readyz'], {
        kubeconfig,
      });
    await expect.poll(async () => (await said()).stdout, { timeout: 60_000 }).toContain('ok');
  });

  it('gives no later machine the keys of the CAs', async () => {
    const templates = cloud.resources({ type: 'aws:ec2:LaunchTemplate' });
    expect(templates.map(({ name }) => name).filter((name) => name.includes('first'))).toEqual([]);
  });

  it(
    'reverts changes by others on request, with its existing machine',
    async () => {
      const made = () =>
        [...cloud.resources({ type: 'aws:ec2:SecurityGroup' }), ...cloud.resources({ type: 'aws:autoscaling:Group' })]
          .filter(({ inputs }) => /-(cluster|control-plane)$/.test(inputs.name))
          .map(({ type, id, inputs }) => ({ type, id, inputs }));
      const before = made();
      const there = await cloud.instances(account, REGION);
      for (const { type, id } of before)
        await cloud.edit(type, id, (inputs) => {
          if (inputs.ingress) inputs.ingress = [];
          else inputs.suspendedProcesses = [];
        });
      expect(before).toHaveLength(2);
      expect(made()).not.toEqual(before);
      ok(await kubectl(['annotate', 'shoot', own.name, '-n', NAMESPACE, `${ANNOTATIONS.operation}=reconcile`]));
      await expect
        .poll(async () => (await gardenClient().get<Shoot>(SHOOTS, own.name, NAMESPACE)).metadata.annotations ?? {}, {
          timeout: BEGIN_MS,
        })
        .not.toHaveProperty([ANNOTATIONS.operation]);
      expect([made(), await cloud.instances(account, REGION)]).toEqual([before, there]);
    },
    BEGIN_MS,
  );

  // It makes three machines, one after the other, which takes ten minutes.
  rotates(it, { of: 4, turns: [1] })(
    'rotates the encryption key of Secrets on request, with another machine at each step',
    async () => {
      const ownNodes = async () =>
        (await untilNodes(cluster, (all) => all.filter(isOwn).length === 1, 'to have one of the control plane'))
          .filter(isOwn)
          .map(nameOf);
      const keysAt = async (name: string) =>
        JSON.parse(await machines.machine(name).run(['cat', '/etc/kubernetes/pki/encryption.json'])).resources[0]
          .providers[0].secretbox.keys as { name: string }[];
      const [before] = await ownNodes();
      const [earlier] = await keysAt(before!);
      ok(await kubectl(['annotate', 'shoot', own.name, '-n', NAMESPACE, `${ANNOTATIONS.operation}=${ROTATE}`]));
      await timed('another key for Secrets', async () => {
        for (const reason of ['AddingKey', 'WritingWithKey', 'DroppingKey', undefined])
          await until(
            own,
            (found) => findCondition(found?.status?.conditions, 'EncryptionKeyRotating')?.reason === reason,
            `to say ${reason}`,
            BEGIN_MS,
          );
        await untilReady(own, BEGIN_MS);
      });
      const [after] = await ownNodes();
      expect(after).not.toBe(before);
      const there = (await cloud.instances(account, REGION)).map(({ id }) => id);
      expect(there).toHaveLength(2);
      expect(there).not.toContain(before);
      const keys = await keysAt(after!);
      expect(keys.map(({ name }) => name)).toEqual([expect.stringMatching(/^key-/)]);
      expect(keys).not.toContainEqual(earlier);
      await expectSecretAt(machines, after!);
      expect((await cluster.get<ConfigMap>(CONFIGMAPS, 'mark', 'default')).data).toEqual({ said: 'before' });
      expect(await cluster.getOrUndefined(SECRETS, 'kubeadm-certs', 'kube-system')).toBeUndefined();
    },
    4 * BEGIN_MS,
  );

  it(
    'grows to three, one machine after the other',
    async () => {
      await resize(own, 3);
      const found = await timed('1 to 3', () => untilReady(own, BEGIN_MS));
      expect(found.status?.controlPlane).toMatchObject({ desired: 3, ready: 3 });
      const nodes = (await untilNodes(cluster, (all) => all.filter(isOwn).length === 3, 'to have three')).filter(isOwn);
      expect(nodes.every(isReady)).toBe(true);
      expect(await cluster.getOrUndefined(SECRETS, 'kubeadm-certs', 'kube-system')).toBeUndefined();
      for (const node of nodes) await expectSecretAt(machines, nameOf(node));
    },
    BEGIN_MS,
  );

  rotates(it, { of: 4, turns: [3] })(
    'survives the death of a machine, removes it from etcd, and replaces it',
    async () => {
      const before = (await untilNodes(cluster, (all) => all.filter(isOwn).length === 3, 'to have three'))
        .filter(isOwn)
        .map(nameOf);
      const victim = before[1]!;
      await machines.kill(victim);
      await timed('a machine of three replaced', async () => {
        await untilNodes(
          cluster,
          (all) => {
            const now = all.filter(isOwn);
            return now.length === 3 && now.every(isReady) && !now.some((one) => nameOf(one) === victim);
          },
          `to be three without ${victim}`,
          BEGIN_MS,
        );
        await untilReady(own, BEGIN_MS);
      });
      expect((await cluster.get<ConfigMap>(CONFIGMAPS, 'mark', 'default')).data).toEqual({ said: 'before' });
    },
    BEGIN_MS,
  );

  it(
    'shrinks to one with all data',
    async () => {
      await resize(own, 1);
      await timed('3 to 1', () => untilReady(own, BEGIN_MS));
      await untilNodes(cluster, (all) => all.filter(isOwn).length === 1, 'to have one machine for the control plane');
      expect((await cluster.get<ConfigMap>(CONFIGMAPS, 'mark', 'default')).data).toEqual({ said: 'before' });
      await untilPods(cluster, 'echo', (ready) => ready.length === 1, 'to be Ready still');
    },
    BEGIN_MS,
  );

  it(
    'leaves nothing in the cloud after its deletion',
    async () => {
      ok(await kubectl(['delete', 'workercluster', own.name, '-n', NAMESPACE], { timeoutMs: BEGIN_MS }));
      expect(cloud.resources().map(({ type, name }) => `${type} ${name}`)).toEqual([]);
      await expect.poll(() => machines.names(), { timeout: PATIENCE_MS }).toEqual([]);
    },
    BEGIN_MS,
  );
});

// What Google does otherwise than AWS: names, an address of its own before a proxy, and groups that repair nothing by themselves.
describeGoogle('a self-managed cluster whose machines boot at Google', () => {
  let { cloud, account, machines, endpoint }: Partial<CloudTestbed & { endpoint: string }> = {};
  let cluster: KubeClient;
  const atEnd: (() => Promise<unknown>)[] = [];

  beforeAll(async () => {
    const options = { name: 'gcp', region: GOOGLE_REGION, cluster: atGoogle } as const;
    ({ cloud, account, machines, endpoint } = await selfManagedTestbed(atEnd, options));
  }, COLD_MS);

  afterAll(async () => {
    atEnd.push(() => giveUp(atGoogle));
    await endAll(atEnd);
  });

  afterEach(async ({ task }) => {
    if (task.result?.state === 'fail' && machines) console.warn(await machines.journals());
  });

  it(
    'becomes Ready from kubectl apply, with nodes named as their instances',
    async () => {
      await apply(wanted(atGoogle, 'gcp'));
      const { status } = await timed('Ready at Google', () => untilReady(atGoogle, BEGIN_MS));
      expect(status).toMatchObject({
        mode: 'SelfManaged',
        simulated: false,
        endpoint,
        controlPlane: { desired: 1, ready: 1 },
        nodes: { desired: 1, ready: 1 },
      });
      cluster = await clusterClient(atGoogle);
      const nodes = await untilNodes(cluster, (all) => all.filter(isReady).length === 2, 'to be two and Ready');
      const instances = await cloud!.instances(account!, GOOGLE_REGION);
      expect(nodes.map(nameOf).sort()).toEqual(instances.map(({ name }) => name).sort());
      expect(nodes.filter(isOwn)).toHaveLength(1);
      await run(cluster, { name: 'echo' });
    },
    BEGIN_MS,
  );

  rotates(it, { of: 4, turns: [2] })(
    'grows to three in three zones, one machine after the other',
    async () => {
      await resize(atGoogle, 3);
      await timed('1 to 3 at Google', () => untilReady(atGoogle, BEGIN_MS));
      const owned = (all: Node[]) => all.filter(isOwn).filter(isReady).map(nameOf);
      const three = owned(await untilNodes(cluster, (all) => owned(all).length === 3, 'to have three'));
      const there = (await cloud!.instances(account!, GOOGLE_REGION)).filter(({ name }) => three.includes(name));
      expect(new Set(there.map(({ zone }) => zone)).size).toBe(3);
    },
    BEGIN_MS,
  );

  it(
    'leaves nothing in the cloud after its deletion',
    async () => {
      const { name, namespace } = atGoogle;
      ok(await kubectl(['delete', 'workercluster', name, '-n', namespace], { timeoutMs: BEGIN_MS }));
      expect(cloud!.resources().map(({ type, name: its }) => `${type} ${its}`)).toEqual([]);
      await expect.poll(() => machines!.names(), { timeout: PATIENCE_MS }).toEqual([]);
    },
    BEGIN_MS,
  );
});
