import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { technicalID } from '../../../operator/api/names.ts';
import {
  findOrphans,
  removeOrphans,
  type SweepAccount,
  type SweepDependencies,
} from '../../../operator/controllers/managed/sweep.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { parseUntrustedKubeconfig } from '../../../operator/kube/kubeconfig.ts';
import { silent } from '../../../operator/kube/log.ts';
import type {
  CloudAccount,
  CloudContext,
  CloudPool,
  CloudProgress,
  ManagedClusterOutputs,
  Owner,
  WantedCluster,
} from '../../../providers/cloud.ts';
import type { CloudTestbed } from './cloud-testbed.ts';
import { expectNoSecrets, expectOneLine, expectRefused, frozen } from './problems.ts';

const GARDEN = '2b7c5a90-64d4-4a1c-9d3f-0f3f1f6d7a11';
const owner = (namespace: string, name: string, uid: string): Owner => ({
  technicalID: technicalID(namespace, name),
  uid,
  name,
  namespace,
  garden: GARDEN,
});
/** Equal names in two projects, one of which is as long as it may be: so is all that is made of its name. */
const BLUE = owner('shop', 'blue', '6d0b7c1e-0c53-4d0b-8a4f-0d9d60a5a001');
const OTHER_BLUE = owner('n'.repeat(63), 'blue', '6d0b7c1e-0c53-4d0b-8a4f-0d9d60a5a002');
const LONGEST_POOL = 'a23456789012';

/** How long an engine may take for one assertion, on two cores that others use as well. */
const PATIENCE = { timeout: 15 * 60_000 };

/**
 * What ManagedClusters promises, of any cloud that `open` sets up: one life of two clusters, told in order, as each run of an
 * engine takes seconds. A test that fails may make those after it fail.
 * @param machineType one that the testbed's profile has, amd64 and without GPUs
 */
export function keepsClusters(name: string, machineType: string, open: () => Promise<CloudTestbed>): void {
  describe(`the managed clusters of ${name}`, PATIENCE, () => {
    let testbed: CloudTestbed;
    let account: CloudAccount;
    const told: CloudProgress[] = [];

    beforeAll(async () => {
      testbed = await open();
      account = testbed.account();
    }, PATIENCE.timeout);
    afterAll(() => testbed?.close());

    const contextOf = async (of: Owner, more: Partial<CloudContext> = {}): Promise<CloudContext> => ({
      owner: frozen(of),
      account,
      region: testbed.region,
      profile: testbed.profile,
      state: await testbed.state(),
      log: silent,
      signal: new AbortController().signal,
      now: () => new Date(),
      onProgress: (progress) => told.push(progress),
      ...more,
    });

    const pool = (change: Partial<CloudPool> = {}): CloudPool => ({
      name: 'workers',
      machineType,
      minimum: 0,
      maximum: 3,
      desired: 1,
      spot: false,
      gpu: 0,
      architecture: 'amd64',
      labels: { team: 'shop' },
      taints: [],
      zones: [],
      ...change,
    });
    const cheap = () =>
      pool({
        name: LONGEST_POOL,
        spot: true,
        labels: { purpose: 'l'.repeat(63) },
        taints: [
          { key: 'batch', value: 'only', effect: 'NoSchedule' },
          { key: 'empty', effect: 'PreferNoSchedule' },
        ],
        zones: [testbed.zones[1]],
      });
    const cluster = (version: 'old' | 'new', ...pools: CloudPool[]): WantedCluster =>
      frozen({
        region: testbed.region,
        zones: [...testbed.zones],
        kubernetesVersion: testbed.versions[version],
        cidrs: { nodes: '10.0.0.0/16', pods: '10.64.0.0/14', services: '10.128.0.0/20' },
        pools,
        authorizedNetworks: [],
      });
    const first = () => cluster('old', pool(), cheap());
    const grown = () => cluster('new', pool({ desired: 2 }), cheap());
    let smaller: Partial<CloudPool> = {};
    const last = () => cluster('new', pool(smaller), cheap());
    const minor = (version: string) => version.split('.').slice(0, 2).join('.');

    const exists = () => testbed.resources(account);
    const taggedOf = async (of: Owner) =>
      ((await testbed.managed.tagged?.(await contextOf(of))) ?? []).filter((one) => one.owner.uid === of.uid);
    /** Runs something that must leave the cloud as it is. */
    async function changingNothing<T>(run: () => Promise<T>): Promise<T> {
      const before = { writes: testbed.writes(), resources: exists() };
      const result = await run();
      expect({ writes: testbed.writes(), resources: exists() }).toEqual(before);
      return result;
    }
    let outputs: ManagedClusterOutputs;
    let ofBlue: string[];

    it("are adjusted so that the provider's validation accepts them", () => {
      expect(testbed.managed.validate(first(), testbed.profile)).toEqual([]);
      expect(testbed.managed.version).not.toBe('');
    });

    it('belong to the account of the credentials, whose check creates nothing', async () => {
      const found = await changingNothing(async () => testbed.managed.checkAccount(await contextOf(BLUE)));
      expect(found).toEqual({ id: account.id, missing: [] });
    });

    it('are planned as creations of all their parts, without any creation', async () => {
      const changes = await changingNothing(async () => testbed.managed.preview(await contextOf(BLUE), first()));
      expect(new Set(changes.map(({ operation }) => operation))).toEqual(new Set(['create']));
      for (const { resource } of changes) expectOneLine(resource);
      expect(exists()).toEqual([]);
    });

    it('are not created for a caller that has aborted already', async () => {
      const signal = AbortSignal.abort(new Error('given up'));
      const apply = testbed.managed.apply(await contextOf(BLUE, { signal }), first());
      await expect(apply).rejects.toThrow();
      expect(exists()).toEqual([]);
    });

    it('are created with outputs to reach them', async () => {
      outputs = await testbed.managed.apply(await contextOf(BLUE), first());
      ofBlue = exists();
      expect(outputs.endpoint).toMatch(/^https:\/\/[^/]+$/);
      expect(outputs.certificateAuthority).toContain('-----BEGIN CERTIFICATE-----');
      expect(outputs.version).toContain(minor(first().kubernetesVersion));
      expect(outputs.name.length).toBeGreaterThan(0);
    });

    it('pass labels, taints, zones and spot of a pool to its nodes', () => {
      expect(testbed.pool(BLUE, pool())).toMatchObject({
        machineTypes: [machineType],
        nodes: 1,
        spot: false,
        labels: { team: 'shop' },
        taints: [],
        zones: testbed.zones,
      });
      expect(testbed.pool(BLUE, cheap())).toMatchObject({
        nodes: 1,
        spot: true,
        labels: cheap().labels,
        taints: expect.arrayContaining(cheap().taints),
        zones: [testbed.zones[1]],
      });
    });

    it('are listed by tags with their complete owner', async () => {
      const tagged = await taggedOf(BLUE);
      expect(tagged.length).toBeGreaterThan(1);
      const whole = tagged.find(({ owner: found }) => found.technicalID && found.namespace && found.garden);
      expect(whole?.owner).toEqual(BLUE);
      for (const { owner: found } of tagged) expect(BLUE).toMatchObject(found);
    });

    it('are unchanged when they are in the desired state', async () => {
      const again = await changingNothing(async () => testbed.managed.apply(await contextOf(BLUE), first()));
      expect(again).toEqual(outputs);
    });

    it('have a kubeconfig that needs no other program, without any creation', async () => {
      const { kubeconfig, expiresAt } = await changingNothing(async () =>
        testbed.managed.kubeconfig(await contextOf(BLUE), outputs),
      );
      expect(parseUntrustedKubeconfig(kubeconfig).server.replace(/\/$/, '')).toBe(outputs.endpoint);
      expect(kubeconfig).not.toMatch(/\bexec\b|auth-provider/);
      if (expiresAt !== undefined) expect(Date.parse(expiresAt)).toBeGreaterThan(Date.now());
    });

    it('are planned with the changed parts only', async () => {
      const changes = await changingNothing(async () => testbed.managed.preview(await contextOf(BLUE), grown()));
      expect(changes).not.toEqual([]);
      expect(changes.filter(({ operation }) => operation === 'delete' || operation === 'replace')).toEqual([]);
      for (const { resource } of changes) expect(resource.toLowerCase()).toMatch(/cluster|pool|group|addon/);
    });

    it('are never mixed up with a cluster of the same name in another project', async () => {
      const giveUp = new AbortController();
      const onProgress = (progress: CloudProgress) => {
        told.push(progress);
        if (progress.description.startsWith('creating')) giveUp.abort(new Error('the cluster was changed'));
      };
      const cut = testbed.managed.apply(await contextOf(OTHER_BLUE, { onProgress, signal: giveUp.signal }), first());
      await expect(cut, 'an apply that is cancelled in the middle').rejects.toThrow();
      await testbed.managed.apply(await contextOf(OTHER_BLUE), first());
      const others = exists().filter((id) => !ofBlue.includes(id));
      expect(exists()).toEqual(expect.arrayContaining(ofBlue));
      expect(others.length, 'as many as of the one that was made in one go').toBe(ofBlue.length);
      expect(testbed.pool(OTHER_BLUE, cheap())).toMatchObject({ nodes: 1, labels: cheap().labels });
      expect(testbed.pool(BLUE, cheap())).toMatchObject({ nodes: 1 });
    });

    it('show drift by others, which is reverted only on request', async () => {
      await testbed.damage(BLUE, cheap());
      expect(await changingNothing(async () => testbed.managed.drift(await contextOf(BLUE), first()))).not.toEqual([]);
      expect(testbed.pool(BLUE, cheap())).toBeUndefined();
      // Mends, scales out and upgrades in one go.
      const { version } = await testbed.managed.apply(await contextOf(BLUE, { refresh: true }), grown());
      expect(version).toContain(minor(grown().kubernetesVersion));
      expect(testbed.pool(BLUE, cheap())).toMatchObject({ nodes: 1, spot: true });
      expect(testbed.pool(BLUE, pool())).toMatchObject({ nodes: 2 });
      expect(exists()).toHaveLength(2 * ofBlue.length);
    });

    it("report the cloud's refusals with code, and without secrets", async () => {
      const more = cluster('new', pool({ desired: 2 }), cheap(), pool({ name: 'more', desired: 3 }));
      for (const trouble of testbed.troubles) {
        trouble.begin(account);
        try {
          const secrets = testbed.secrets(account);
          if (trouble.everything)
            await expectRefused(testbed.managed.checkAccount(await contextOf(BLUE)), trouble.code, secrets);
          else await expectRefused(testbed.managed.apply(await contextOf(BLUE), more), trouble.code, secrets);
        } catch (error) {
          throw new Error(`${trouble.what}: ${error instanceof Error ? error.message : error}`, { cause: error });
        } finally {
          testbed.heal();
        }
      }
    });

    it('lose exactly the nodes to remove, once, and none in an apply of the smaller size', async () => {
      const before = testbed.nodes(BLUE, pool());
      const [strangers] = testbed.nodes(OTHER_BLUE, pool());
      expect(before).toHaveLength(2);
      const [staying, going] = [before[0]!, before[1]!];
      const remove = async () => {
        const ctx = await contextOf(BLUE);
        const { inZones, ...left } = await testbed.managed.removeNodes!(ctx, outputs, 'workers', [going, strangers!]);
        expect(left).toEqual({ size: 1 });
        expect(testbed.nodes(BLUE, pool())).toEqual([staying]);
        expect(testbed.pool(BLUE, pool())).toMatchObject({ nodes: 1 });
        return inZones;
      };
      const inZones = await remove();
      // Whoever was cut short asks again.
      expect(await remove()).toEqual(inZones);
      smaller = { desired: 1, ...(inZones && { inZones }) };
      await testbed.managed.apply(await contextOf(BLUE), cluster('new', pool(smaller), cheap()));
      expect(testbed.nodes(BLUE, pool())).toEqual([staying]);
      expect(testbed.nodes(OTHER_BLUE, pool())).toHaveLength(1);
      const settled = cluster('new', pool(smaller), cheap());
      expect(
        await testbed.managed.drift(await contextOf(BLUE), settled),
        'nothing that others would have changed',
      ).toEqual([]);
    });

    it('are scaled in, and lose a pool that was created only partly', async () => {
      await testbed.managed.apply(await contextOf(BLUE), last());
      expect(exists()).toHaveLength(2 * ofBlue.length);
      expect(testbed.pool(BLUE, pool())).toMatchObject({ nodes: 1 });
      expect(testbed.pool(BLUE, pool({ name: 'more' }))).toBeUndefined();
    });

    it('are found again after a loss of state, and created once', async () => {
      await testbed.loseState();
      const before = exists();
      const again = await testbed.managed.apply(await contextOf(BLUE), last());
      expect(again.endpoint).toBe(outputs.endpoint);
      expect(exists().sort()).toEqual(before.sort());
    });

    it('are swept when nobody remembers them, even after an interruption, without harm to others', async () => {
      // What was known of its stacks was lost above, and nobody knows how it was described.
      const { state } = await contextOf(OTHER_BLUE);
      const { namespace, name: called, uid } = BLUE;
      const deps: SweepDependencies = {
        garden: GARDEN,
        client: undefined as unknown as KubeClient,
        log: silent,
        now: () => new Date(),
        stateBackend: async () => state,
        owners: async () => [{ namespace, name: called, uid }],
        described: () => undefined,
      };
      const by: SweepAccount = {
        profile: testbed.profile,
        clouds: testbed.managed,
        credentials: { use: { namespace: 'shop', secret: 'account' }, values: account.credentials, version: '1' },
        regions: [testbed.region],
      };
      const { signal } = new AbortController();
      const sweep = async () => removeOrphans(deps, (await findOrphans(deps, [by], signal)).found, signal);
      testbed.cutShort();
      expect(await sweep()).toHaveLength(1);
      testbed.heal();
      expect(await sweep()).toEqual([]);
      expect(exists()).toHaveLength(ofBlue.length);
      expect(await taggedOf(OTHER_BLUE)).toEqual([]);
      expect(testbed.pool(BLUE, pool())).toMatchObject({ nodes: 1 });
    });

    it('are deleted completely', async () => {
      await testbed.managed.destroy(await contextOf(BLUE), last());
      expect(exists()).toEqual([]);
      expect(await testbed.managed.tagged?.(await contextOf(BLUE))).toEqual([]);
      await changingNothing(async () => testbed.managed.destroy(await contextOf(BLUE), last()));
    });

    it('reported progress in lines without secrets', () => {
      expect(told.length).toBeGreaterThan(0);
      const secrets = testbed.secrets(account);
      for (const { description, done, total } of told) {
        expectOneLine(description);
        expectNoSecrets(description, secrets);
        expect(done).toBeGreaterThanOrEqual(0);
        if (total !== undefined) expect(done).toBeLessThanOrEqual(total);
      }
    });
  });
}
