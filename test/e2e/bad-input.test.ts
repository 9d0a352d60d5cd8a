import { dump } from 'js-yaml';
import { beforeAll, describe, expect, it } from 'vitest';
import type { CloudProfile } from '../../operator/api/cloudprofile.ts';
import { findCondition, isTrue } from '../../operator/api/conditions.ts';
import { API_VERSION, LABELS } from '../../operator/api/group.ts';
import { kubeconfigSecretName } from '../../operator/api/names.ts';
import type { WorkerCluster } from '../../operator/api/workercluster.ts';
import {
  CLOUDPROFILES,
  type KubeObject,
  NAMESPACES,
  PVS,
  SECRETS,
  SHOOTS,
  WORKERCLUSTERS,
} from '../../operator/kube/resources.ts';
import {
  changeCluster,
  clusterClient,
  coppice,
  deleteCluster,
  e2e,
  follow,
  gardenClient,
  makeCluster,
  type Name,
  PATIENCE_MS,
  uniqueName,
  until,
  untilReady,
  untilShoot,
} from '../kit/garden.ts';

const manifest = (spec: object, name = uniqueName('bad')): KubeObject => ({
  apiVersion: API_VERSION,
  kind: 'WorkerCluster',
  metadata: { name, namespace: 'default' },
  spec,
});
/** `coppice apply`, as a person does. */
const apply = (object: KubeObject) => coppice(['apply', '-f', '-'], { input: dump(object) });

/** Nothing in the garden or in the seed bears the cluster's name. */
async function expectNothingMade({ name, namespace }: Name): Promise<void> {
  const client = gardenClient();
  expect(await client.getOrUndefined(SHOOTS, name, namespace)).toBeUndefined();
  expect(await client.getOrUndefined(SECRETS, kubeconfigSecretName(name), namespace)).toBeUndefined();
  const { items } = await client.list(NAMESPACES, { labelSelector: `${LABELS.shoot}=${name}` });
  // An empty one that is being removed takes Kubernetes 5 s.
  expect(items.filter((space) => space.metadata.deletionTimestamp === undefined)).toEqual([]);
}

const sound = { cloudProvider: 'simulated', dataPlaneNodes: 0 };

e2e('bad input', () => {
  describe('is refused at admission:', () => {
    it.each<[string, object, RegExp]>([
      ['an even number of control plane nodes', { ...sound, controlPlaneNodes: 2 }, /controlPlaneNodes/],
      ['a negative number of control plane nodes', { ...sound, controlPlaneNodes: -1 }, /controlPlaneNodes/],
      ['a negative number of nodes', { ...sound, dataPlaneNodes: -1 }, /dataPlaneNodes/],
      ['an absurd number of nodes', { ...sound, dataPlaneNodes: 1_000_000 }, /dataPlaneNodes/],
      ['a version that is none', { ...sound, kubernetes: { version: 'newest' } }, /kubernetes\.version/],
      ['a field that does not exist', { ...sound, dataPlaneNode: 3 }, /dataPlaneNode/],
      ['no provider', { dataPlaneNodes: 1 }, /cloudProvider/],
    ])('%s', async (_, spec, message) => {
      const object = manifest(spec);
      const { code, stdout, stderr } = await apply(object);
      expect(code).toBe(1);
      expect(stdout).toBe('');
      expect(stderr).toMatch(message);
      expect(stderr.trim().split('\n')).toHaveLength(1);
      expect(await gardenClient().getOrUndefined(WORKERCLUSTERS, object.metadata.name, 'default')).toBeUndefined();
    });

    it('a name longer than a label', async () => {
      const { code, stderr } = await apply(manifest(sound, 'n'.repeat(64)));
      expect(code).toBe(1);
      expect(stderr).toMatch(/metadata\.name/);
    });
  });

  describe('that only the operator detects becomes a condition, and nothing is created:', () => {
    it.each<[string, object, RegExp]>([
      ['an unknown provider', { ...sound, cloudProvider: 'nowhere' }, /no CloudProfile "nowhere".*local/],
      [
        'an unknown machine type',
        { ...sound, dataPlaneNodes: 1, machineType: 'huge' },
        /machine type "?huge"?.*medium/,
      ],
      [
        'an unknown machine type of a pool',
        { ...sound, dataPlaneNodes: 1, pools: [{ name: 'a', minimum: 1, machineType: 'huge' }] },
        /pools\[0\]\.machineType.*huge/,
      ],
      ['an unknown version', { ...sound, kubernetes: { version: '1.30.1' } }, /offers no Kubernetes 1\.30\.1.*1\.36/],
      ['an unknown region', { ...sound, region: 'moon' }, /no region "moon".*simulated/],
      ['an unknown zone', { ...sound, zones: ['moon'] }, /no zone "moon"/],
      ['more members than a hosted control plane has', { ...sound, controlPlaneNodes: 5 }, /1 or 3 members, not 5/],
      ['a mode that cannot be had', { ...sound, mode: 'SelfManaged' }, /cannot make machines for a control plane/],
      [
        'ranges that overlap',
        { ...sound, networking: { pods: '10.1.0.0/16', services: '10.1.128.0/20' } },
        /10\.1\.128\.0\/20 overlaps/,
      ],
      [
        'a pod range that is too small',
        { ...sound, dataPlaneNodes: 5, networking: { pods: '10.1.0.0/22' } },
        /for 4 nodes only, 5 are wanted/,
      ],
    ])('%s', async (_, spec, message) => {
      const cluster = await makeCluster(spec);
      const found = await until(
        cluster,
        (one) => one?.status?.observedGeneration === one?.metadata.generation && one?.status?.phase === 'Failed' && one,
        'to be refused',
      );
      for (const type of ['SpecAccepted', 'Ready']) {
        expect(findCondition(found.status?.conditions, type)).toMatchObject({
          status: 'False',
          reason: 'ConfigurationProblem',
          message: expect.stringMatching(message),
          codes: ['ERR_CONFIGURATION_PROBLEM'],
        });
      }
      expect(found.status?.lastErrors?.[0]?.codes).toEqual(['ERR_CONFIGURATION_PROBLEM']);
      const waited = await coppice(['wait', cluster.name, '--timeout', '1m']);
      expect(waited.code).toBe(1);
      expect(waited.stderr).toMatch(message);
      await expectNothingMade(cluster);
      await deleteCluster(cluster);
    });

    it('a Shoot whose profile does not exist', async () => {
      const shoot: Name = { name: uniqueName('bad'), namespace: 'default' };
      await gardenClient().create({
        apiVersion: API_VERSION,
        kind: 'Shoot',
        metadata: shoot,
        spec: {
          cloudProfile: { kind: 'CloudProfile', name: 'nowhere' },
          region: 'moon',
          kubernetes: { version: '1.36.3' },
          networking: { pods: '10.1.0.0/16', services: '10.2.0.0/16' },
          provider: { type: 'nowhere', workers: [] },
        },
      });
      const found = await untilShoot(
        shoot,
        (one) => findCondition(one?.status?.conditions, 'Ready')?.status === 'False' && one,
        'to be refused',
      );
      expect(findCondition(found.status?.conditions, 'Ready')).toMatchObject({
        message: expect.stringMatching(/no CloudProfile "nowhere"/),
        codes: [expect.stringMatching(/^ERR_.*CONFIGURATION_PROBLEM$/)],
      });
      expect((await gardenClient().list(NAMESPACES, { labelSelector: `${LABELS.shoot}=${shoot.name}` })).items).toEqual(
        [],
      );
      await gardenClient().delete(SHOOTS, shoot.name, shoot.namespace);
      await untilShoot(shoot, (one) => one === undefined, 'to be gone');
    });

    it('is accepted once it is corrected', async () => {
      const cluster = await makeCluster({ ...sound, kubernetes: { version: '1.30.1' } });
      await until(cluster, (one) => one?.status?.phase === 'Failed', 'to be refused');
      await gardenClient().mergePatch(WORKERCLUSTERS, cluster.name, cluster.namespace, { spec: { kubernetes: null } });
      await until(cluster, (one) => isTrue(one?.status?.conditions, 'SpecAccepted'), 'to be accepted');
      await untilShoot(cluster, (one) => one !== undefined, 'to be made');
      // Deleted when it is half made, it leaves nothing.
      await deleteCluster(cluster);
      await expectNothingMade(cluster);
    });
  });

  describe('for a running cluster:', () => {
    const name = `${'n'.repeat(48)}-${Date.now().toString(36).padStart(14, '0')}`;
    let one: Name;
    let other: Name;
    const profile = uniqueName('profile');

    beforeAll(async () => {
      expect(name).toHaveLength(63);
      const original = await gardenClient().get<KubeObject>(CLOUDPROFILES, 'simulated');
      await gardenClient().create({
        apiVersion: API_VERSION,
        kind: 'CloudProfile',
        metadata: { name: profile },
        spec: original.spec,
      });
      [one, other] = await Promise.all([
        makeCluster({ ...sound, cloudProfile: profile, dataPlaneNodes: 1, region: 'simulated' }, { name }),
        makeCluster({ ...sound, dataPlaneNodes: 2 }, { name, namespace: uniqueName('team') }),
      ]);
      await Promise.all([untilReady(one), untilReady(other)]);
    });

    it('names of 63 characters, equal in two namespaces, create two clusters', async () => {
      const [here, there] = await Promise.all([clusterClient(one), clusterClient(other)]);
      expect(here.server).not.toBe(there.server);
      await here.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'only-here' } });
      expect(await here.getOrUndefined(NAMESPACES, 'only-here')).toBeDefined();
      expect(await there.getOrUndefined(NAMESPACES, 'only-here')).toBeUndefined();
      const { items } = await gardenClient().list(NAMESPACES, { labelSelector: `${LABELS.shoot}=${name}` });
      expect(new Set(items.map(({ metadata }) => metadata.name)).size).toBe(2);
    });

    it.each<[string, object, RegExp]>([
      ['the provider', { cloudProvider: 'local' }, /cloudProvider cannot be changed/],
      ['the profile', { cloudProfile: 'simulated' }, /cloudProfile cannot be changed/],
      ['the region', { region: 'elsewhere' }, /region cannot be changed/],
      ['the mode', { mode: 'Managed' }, /mode cannot be changed/],
      ['the pod range', { networking: { pods: '10.9.0.0/16' } }, /networking\.pods cannot be changed/],
      ['the version to an older one', { kubernetes: { version: '1.35.4' } }, /no downgrade/],
      ['the version by two minors', { kubernetes: { version: '1.38.0' } }, /one minor version at a time/],
    ])('%s cannot be changed', async (_, spec, message) => {
      const before = await gardenClient().get<WorkerCluster>(WORKERCLUSTERS, one.name, one.namespace);
      await expect(changeCluster(one, spec)).rejects.toThrow(message);
      const after = await gardenClient().get<WorkerCluster>(WORKERCLUSTERS, one.name, one.namespace);
      expect(after.metadata.generation).toBe(before.metadata.generation);
    });

    it.each<[string, object, object, RegExp]>([
      ['an unknown machine type', { machineType: 'huge' }, { machineType: null }, /machine type "?huge"?/],
      [
        'a version that the profile does not offer',
        { kubernetes: { version: '1.36.99' } },
        { kubernetes: null },
        /1\.36\.99/,
      ],
    ])('%s is refused completely, and the cluster stays unchanged', async (_, wrong, correction, message) => {
      const { status: before } = await untilReady(one);
      await gardenClient().mergePatch(WORKERCLUSTERS, one.name, one.namespace, {
        spec: { ...wrong, dataPlaneNodes: 3 },
      });
      const refused = await until(
        one,
        (found) => findCondition(found?.status?.conditions, 'SpecAccepted')?.status === 'False' && found,
        'to be refused',
      );
      expect(findCondition(refused.status?.conditions, 'SpecAccepted')).toMatchObject({
        message: expect.stringMatching(message),
        codes: ['ERR_CONFIGURATION_PROBLEM'],
      });
      expect(refused.status?.nodes).toEqual({ ...before?.nodes, asked: 3 });
      expect(refused.status?.kubernetesVersion).toBe(before?.kubernetesVersion);
      expect(isTrue(refused.status?.conditions, 'APIServerAvailable')).toBe(true);
      // It stays Ready, but a script that waits for its change must not take that for success.
      const waited = await coppice(['wait', one.name, '--timeout', '1m']);
      expect(waited.code).toBe(1);
      expect(waited.stderr).toMatch(message);
      await gardenClient().mergePatch(WORKERCLUSTERS, one.name, one.namespace, {
        spec: { ...correction, dataPlaneNodes: 1 },
      });
      await until(one, (found) => isTrue(found?.status?.conditions, 'SpecAccepted'), 'to be accepted');
      await untilReady(one);
    });

    it('a profile in use cannot be deleted before its cluster', async () => {
      await gardenClient().delete(CLOUDPROFILES, profile);
      const held = await gardenClient().get<KubeObject>(CLOUDPROFILES, profile);
      expect(held.metadata.deletionTimestamp).toBeDefined();
      await until(one, (found) => isTrue(found?.status?.conditions, 'Ready'), 'to stay Ready');
      const profiles = await follow<CloudProfile>(gardenClient(), CLOUDPROFILES);
      await profiles.waitFor(
        () => {
          const deleting = findCondition(profiles.get(profile)?.status?.conditions, 'Deleting');
          return deleting?.message?.includes(`WorkerCluster default/${name}`);
        },
        { timeoutMs: 60_000, what: 'the profile to say who uses it' },
      );
      await deleteCluster(one);
      await profiles.waitFor(() => profiles.get(profile) === undefined, {
        timeoutMs: 60_000,
        what: 'the profile to be gone after its last cluster',
      });
    });

    it('a deletion leaves the cluster of the same name in another namespace', async () => {
      await untilReady(other);
      const reached = await clusterClient(other);
      await expect.poll(() => reached.ready(), { timeout: PATIENCE_MS }).toBe(true);
      await deleteCluster(other);
      const { items } = await gardenClient().list(NAMESPACES, { labelSelector: `${LABELS.shoot}=${name}` });
      expect(items.filter((space) => space.metadata.deletionTimestamp === undefined)).toEqual([]);
      const volumes = (await gardenClient().list(PVS)).items as (KubeObject & {
        spec?: { claimRef?: { namespace?: string } };
      })[];
      expect(volumes.filter(({ spec }) => spec?.claimRef?.namespace?.includes(name.slice(0, 20)))).toEqual([]);
    });
  });
});
