import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { CloudProfile } from '../../operator/api/cloudprofile.ts';
import { findCondition, isTrue } from '../../operator/api/conditions.ts';
import type { CredentialsBinding } from '../../operator/api/credentialsbinding.ts';
import type { WorkerCluster } from '../../operator/api/workercluster.ts';
import { readStatus } from '../../operator/garden/daemon/status.ts';
import { StateDirectory } from '../../operator/garden/state/state.ts';
import {
  CLOUDPROFILES,
  CREDENTIALSBINDINGS,
  EVENTS,
  type KubeObject,
  NAMESPACES,
  WORKERCLUSTERS,
} from '../../operator/kube/resources.ts';
import { type CloudName, type FakeCloud, fakeCloud } from '../kit/cloud/index.ts';
import {
  coppice,
  e2e,
  follow,
  garden,
  gardenClient,
  kubectl,
  type Name,
  ok,
  PATIENCE_MS,
  temporaryFile,
  until,
  untilReady,
} from '../kit/garden.ts';
import { type RealControlPlanes, realControlPlanes } from '../kit/real-control-planes.ts';
import { argsOnPage } from '../kit/task-pages/on-page.ts';

const NAMESPACE = 'shop';
const CLUSTER = 'aws:eks:Cluster';
const POOL = 'aws:eks:NodeGroup';
const AWS_SERVICES = ['sts', 'iam', 'ec2', 'eks', 'kms', 'autoscaling', 'tagging'];

let cloud: FakeCloud;
let planes: RealControlPlanes;

/** As somebody would who types it. */
const apply = async (...objects: object[]): Promise<string> =>
  ok(await kubectl(['apply', '-f', '-'], { input: objects.map((one) => JSON.stringify(one)).join('\n---\n') }));

/** Tells a profile where its cloud is, and takes that back after the tests. */
async function pointAt(profile: string, endpoints: Record<string, string>): Promise<void> {
  const say = (value: object | null) =>
    gardenClient().mergePatch<CloudProfile>(CLOUDPROFILES, profile, undefined, { spec: { providerConfig: value } });
  await say({ endpoints });
  atEnd.push(() => say(null));
}
const atEnd: (() => Promise<unknown>)[] = [];

/** Secret and binding of an account of the fake cloud. */
async function bind(name: CloudName, type: string, number = 1): Promise<void> {
  const metadata = { name: type, namespace: NAMESPACE };
  await apply(
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } },
    { apiVersion: 'v1', kind: 'Secret', metadata, stringData: cloud.account(name, number).credentials },
    {
      apiVersion: 'multi-cluster.demo.io/v1',
      kind: 'CredentialsBinding',
      metadata,
      provider: { type },
      credentialsRef: { apiVersion: 'v1', kind: 'Secret', name: type, namespace: NAMESPACE },
    },
  );
}

const cluster = (name: string, cloudProvider: string) => ({
  apiVersion: 'multi-cluster.demo.io/v1',
  kind: 'WorkerCluster',
  metadata: { name, namespace: NAMESPACE },
  spec: { cloudProvider, dataPlaneNodes: 2, credentialsRef: { name: cloudProvider } },
});

const condition = (found: WorkerCluster | undefined, type: string) => findCondition(found?.status?.conditions, type);

/** What `kubectl get nodes` prints with the kubeconfig that `coppice kubeconfig` prints. */
async function nodesOf({ name, namespace }: Name): Promise<{ file: string; nodes: string[] }> {
  const text = ok(await coppice(['kubeconfig', name, '--namespace', namespace]));
  const file = await temporaryFile(`${name}.yaml`, text);
  const table = ok(await kubectl(['get', 'nodes', '--no-headers'], { kubeconfig: file }));
  return { file, nodes: table.trim().split('\n') };
}

const ready = (nodes: readonly string[]): string[] => nodes.filter((line) => /\sReady\s/.test(line));

/** kill -9. Whoever supervises it starts another one. */
async function killOperator(): Promise<void> {
  const status = await readStatus(new StateDirectory(garden.home).statusFile);
  process.kill(status!.processes.find(({ name }) => name === 'operator')!.pid!, 'SIGKILL');
}

e2e('managed clusters, in fake clouds with real control planes,', () => {
  beforeAll(async () => {
    cloud = await fakeCloud();
    // Where an operator without a way to get.pulumi.com has its plugins.
    await cloud.installInto(join(garden.home, 'clouds', 'pulumi-home'));
    planes = await realControlPlanes(cloud);
  });
  afterAll(async () => {
    // What a test that failed has left goes with its cloud; the garden would not go down for its sake.
    for (const { metadata } of (await gardenClient().list(WORKERCLUSTERS, { namespace: NAMESPACE })).items) {
      await gardenClient().delete(WORKERCLUSTERS, metadata.name, NAMESPACE);
      await gardenClient().mergePatch(WORKERCLUSTERS, metadata.name, NAMESPACE, { metadata: { finalizers: null } });
    }
    await gardenClient().delete(NAMESPACES, NAMESPACE);
    for (const undo of atEnd) await undo();
    await planes?.close();
    await cloud?.close();
  });

  afterEach(() => cloud.faults.clear());

  describe('at EKS', () => {
    const blue: Name = { name: 'blue', namespace: NAMESPACE };
    let kubeconfig: string;
    const group = () => cloud.resource(POOL);

    beforeAll(async () => {
      const { aws } = await cloud.web();
      await pointAt('aws', Object.fromEntries(AWS_SERVICES.map((service) => [service, aws(service, '')])));
    });

    it('are created only after the cloud confirmed the account', async () => {
      await bind('aws', 'aws');
      const bindings = await follow<CredentialsBinding>(gardenClient(), CREDENTIALSBINDINGS);
      const accepted = await bindings.waitFor(
        () => {
          const found = bindings.get(`${NAMESPACE}/aws`);
          return isTrue(found?.status?.conditions, 'Ready') && found;
        },
        { timeoutMs: PATIENCE_MS, what: () => `the binding to be Ready: ${JSON.stringify(bindings.list())}` },
      );
      expect(accepted.status?.account).toBe(cloud.account('aws').id);
      expect(cloud.resources()).toEqual([]);
    });

    it('are created once, with progress, though the operator is killed meanwhile', async () => {
      // Longer than between two words of progress.
      cloud.faults.set({ latencyMs: { [CLUSTER]: 12_000 } });
      await apply(cluster('blue', 'aws'));
      await until(
        blue,
        (one) => /^creating aws:eks\/cluster:/.test(one?.status?.lastOperation?.description ?? ''),
        'to tell that it is being made',
      );
      await killOperator();
      await untilReady(blue);
      cloud.faults.clear();
      expect(cloud.resources({ type: CLUSTER })).toHaveLength(1);
      expect(cloud.resources({ type: 'aws:ec2:Vpc' })).toHaveLength(1);
      expect(cloud.resources({ type: POOL })).toHaveLength(1);
      // One for each zone.
      expect(cloud.resources({ type: 'aws:ec2:NatGateway' })).toHaveLength(3);
      expect(planes.names()).toHaveLength(1);
    });

    it('have their own kubeconfig, with which kubectl lists the nodes', async () => {
      const { file, nodes } = await nodesOf(blue);
      kubeconfig = file;
      expect(ready(nodes)).toHaveLength(2);
      const whoami = ok(await kubectl(['auth', 'whoami'], { kubeconfig }));
      expect(whoami).toContain('system:serviceaccount:kube-system:coppice-admin');
    });

    it('report their resources and cost', async () => {
      const { spec } = await gardenClient().get<CloudProfile>(CLOUDPROFILES, 'aws');
      const found = await until(blue, (one) => one?.status?.cost && one, 'to have a cost');
      const price = spec.machineTypes.find(({ name }) => name === spec.defaults?.machineType)!.price!;
      const hourly = Number(price.regions?.find(({ name }) => name === spec.defaults?.region)?.hourly);
      expect(Number(found.status?.cost?.hourly)).toBeCloseTo(2 * hourly + Number(spec.controlPlaneFee?.hourly), 4);
      expect(found.status).toMatchObject({
        mode: 'Managed',
        nodes: { desired: 2, current: 2, ready: 2 },
        resource: { total: { cpu: '4' } },
      });
    });

    it('are scaled out and in by kubectl', async () => {
      for (const replicas of [3, 2]) {
        ok(await kubectl(['scale', 'workercluster', 'blue', '-n', NAMESPACE, `--replicas=${replicas}`]));
        await untilReady(blue);
        expect(group().inputs.scalingConfig.desiredSize).toBe(replicas);
        expect(ready((await nodesOf(blue)).nodes)).toHaveLength(replicas);
      }
    });

    it('report changes by others in the cloud, and revert them on request', async () => {
      const { name } = group();
      await cloud.edit(POOL, name, ({ labels }) => {
        labels.team = 'others';
      });
      await gardenClient().mergePatch(CLOUDPROFILES, 'aws', undefined, { spec: { drift: { interval: '1s' } } });
      const drifted = await until(blue, (one) => isTrue(one?.status?.conditions, 'Drifted') && one, 'to have drifted');
      expect(condition(drifted, 'Drifted')?.message).toContain('aws:eks/nodeGroup:NodeGroup');
      expect(isTrue(drifted.status?.conditions, 'Ready')).toBe(true);
      await gardenClient().mergePatch(CLOUDPROFILES, 'aws', undefined, { spec: { drift: null } });
      const metadata = { annotations: { 'gardener.cloud/operation': 'reconcile' } };
      await gardenClient().mergePatch(WORKERCLUSTERS, 'blue', NAMESPACE, { metadata });
      await until(blue, (one) => condition(one, 'Drifted')?.status === 'False', 'to be mended');
      expect(group().inputs.labels.team).toBeUndefined();
    });

    it('report revoked credentials as the cause, and continue once they are valid again', async () => {
      cloud.faults.set({ revoked: [cloud.account('aws').key] });
      ok(await kubectl(['scale', 'workercluster', 'blue', '-n', NAMESPACE, '--replicas=1']));
      const refused = await until(
        blue,
        (one) => condition(one, 'CredentialsValid')?.status === 'False' && one,
        'to say',
      );
      expect(condition(refused, 'CredentialsValid')).toMatchObject({
        reason: 'Refused',
        codes: expect.arrayContaining(['ERR_INFRA_UNAUTHENTICATED']),
      });
      expect(JSON.stringify(refused.status)).not.toContain(cloud.account('aws').secret);
      // What runs goes on running.
      expect(ready((await nodesOf(blue)).nodes)).toHaveLength(2);
      cloud.faults.clear();
      await gardenClient().mergePatch(WORKERCLUSTERS, 'blue', NAMESPACE, {
        metadata: { annotations: { 'gardener.cloud/operation': 'retry' } },
      });
      await until(
        blue,
        (one) => one?.status?.nodes?.current === 1 && isTrue(one.status.conditions, 'Ready'),
        'to go on',
      );
      expect(ready((await nodesOf(blue)).nodes)).toHaveLength(1);
    });

    it('leave remains of a forced deletion to the sweep, and nothing afterwards', async () => {
      // In this order: of one that is not being deleted the operator takes hold again.
      await gardenClient().delete(WORKERCLUSTERS, 'blue', NAMESPACE);
      await gardenClient().mergePatch(WORKERCLUSTERS, 'blue', NAMESPACE, { metadata: { finalizers: null } });
      const events = await follow<KubeObject & { reason: string; message: string }>(gardenClient(), EVENTS, {
        namespace: NAMESPACE,
      });
      const report = await events.waitFor(() => events.list().find(({ reason }) => reason === 'LeftBehind'), {
        timeoutMs: PATIENCE_MS,
        what: 'a report of what is left behind',
      });
      expect(report.message).toContain('coppice sweep');
      // With a region the sweep leaves out DNS, which this fake cloud does not serve.
      const list = argsOnPage('docs/tasks/sweep.md', 'coppice sweep');
      const listed = ok(await coppice([...list, '--provider', 'aws', '--region', 'eu-central-1']));
      expect(listed).toContain('eks:cluster');
      expect(cloud.resources({ type: CLUSTER })).toHaveLength(1);
      const remove = argsOnPage('docs/tasks/sweep.md', 'coppice sweep --provider aws --region eu-central-1 --yes');
      ok(await coppice(remove, { timeoutMs: PATIENCE_MS }));
      expect(cloud.resources().map(({ type, name }) => `${type} ${name}`)).toEqual([]);
      expect(planes.names()).toEqual([]);
    });
  });

  describe.each<{
    service: string;
    name: CloudName;
    profile: string;
    endpoints: () => Promise<Record<string, string>>;
  }>([
    { service: 'GKE', name: 'gcp', profile: 'gcp', endpoints: async () => (await cloud.web()).gcp },
    {
      service: 'AKS',
      name: 'azure-native',
      profile: 'azure',
      endpoints: async () => ({ ...(await cloud.web()).azure }),
    },
  ])('at $service', ({ name, profile, endpoints }) => {
    it('are created, reached by kubectl, and deleted completely', async () => {
      const named: Name = { name: `green-${profile}`, namespace: NAMESPACE };
      const account = cloud.account(name);
      await pointAt(profile, await endpoints());
      await bind(name, profile);
      await apply(cluster(named.name, profile));
      const made = await untilReady(named);
      expect(made.status).toMatchObject({ mode: 'Managed', nodes: { desired: 2, current: 2, ready: 2 } });
      expect(ready((await nodesOf(named)).nodes)).toHaveLength(2);
      ok(await kubectl(['delete', 'workercluster', named.name, '-n', NAMESPACE], { timeoutMs: PATIENCE_MS }));
      expect(cloud.resources({ account: account.id }).map((one) => `${one.type} ${one.name}`)).toEqual([]);
      expect(planes.names()).toEqual([]);
    });
  });
});
