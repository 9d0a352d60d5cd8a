import { expect, it } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import type { Condition } from '../../../operator/api/meta.ts';
import { reconcileCloudProfile } from '../../../operator/controllers/cloudprofile/controller.ts';
import { silent } from '../../../operator/kube/log.ts';
import { openProviders } from '../../../providers/index.ts';
import { buildCloudProfile } from '../../kit/builders/objects.ts';

const profile = buildCloudProfile({
  metadata: { name: 'local', uid: 'u-1', generation: 1 },
  spec: { type: 'local', kubernetes: {}, machineTypes: [], regions: [] },
});

async function conditionsWhere(localMachines: boolean): Promise<Condition[]> {
  const engine = () => Promise.reject(new Error('nobody asks for it'));
  const provider = openProviders({ engine, home: '/nonexistent/never-made', log: silent, localMachines }).named(
    'local',
  );
  let status: CloudProfile['status'];
  const deps = {
    garden: {
      apply: async (written: CloudProfile) => {
        status = written.status;
        return written;
      },
    },
    profiles: { get: () => profile, absorb: () => {} },
    clusters: { list: () => [] },
    shoots: { list: () => [] },
    now: () => new Date('2026-11-22T00:00:00Z'),
    provider: () => provider,
  } as never;
  await reconcileCloudProfile(deps, 'local', new AbortController().signal);
  return status?.conditions ?? [];
}
const find = (conditions: Condition[], type: string) => conditions.find((condition) => condition.type === type);

it.each([true, false])(
  'a profile of machines that are privileged pods reports that, permitted or not (%s)',
  async (allowed) => {
    const conditions = await conditionsWhere(allowed);
    expect(find(conditions, 'TenantsSeparated')).toMatchObject({ status: 'False', reason: 'NoBoundary' });
    expect(find(conditions, 'TenantsSeparated')?.message).toContain("can take over the seed's nodes");
    expect(find(conditions, 'Ready')).toMatchObject(
      allowed ? { status: 'True' } : { status: 'False', reason: 'NotAllowed', codes: ['ERR_CONFIGURATION_PROBLEM'] },
    );
  },
);

it('a machine type in use is recorded once, also for clusters that come and go', async () => {
  const offered = ['small', 'large'].map((name) => ({ name, cpu: '2', gpu: '0', memory: '4Gi' }));
  let current = { ...profile, spec: { ...profile.spec, machineTypes: offered } } as CloudProfile;
  let clusters: object[] = [];
  let writes = 0;
  const deps = {
    garden: {
      apply: async (written: CloudProfile) => {
        writes++;
        current = { ...current, status: written.status } as CloudProfile;
        return current;
      },
      mergePatch: async () => current,
    },
    profiles: { get: () => current, absorb: () => {} },
    clusters: { list: () => clusters },
    shoots: { list: () => [] },
    now: () => new Date('2026-11-22T00:00:00Z'),
    provider: () => undefined,
  } as never;
  const told = async (...types: string[]) => {
    clusters = types.map((machineType) => ({
      metadata: { name: machineType, namespace: 'default' },
      spec: { cloudProvider: 'local' },
      status: { admitted: { pools: [{ name: 'default', machineType }] } },
    }));
    const before = writes;
    await reconcileCloudProfile(deps, 'local', new AbortController().signal);
    return [writes - before, (current.status?.machineTypes ?? []).map(({ name }) => name)];
  };
  await told();
  expect(await told('small')).toEqual([1, ['small']]);
  expect(await told()).toEqual([0, ['small']]);
  expect(await told('small')).toEqual([0, ['small']]);
  expect(await told('large')).toEqual([1, ['large']]);
});
