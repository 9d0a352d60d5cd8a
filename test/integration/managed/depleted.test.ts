import { expect, it } from 'vitest';
import { eksForFile, REGION } from './eks.ts';

/** Half a dozen engine runs on two busy cores. */
const PATIENCE_MS = 10 * 60_000;

const testbed = eksForFile();

it('a cluster at EKS uses its next machine type when the first is depleted, and creates nothing twice', {
  timeout: PATIENCE_MS,
}, async () => {
  const { cloud, garden, account, count } = testbed;
  cloud.faults.set({ depleted: [{ machineType: 'm7i.large' }] });
  const operator = await testbed.operator();
  const key = garden.apply('one', { cloudProvider: 'aws', machineTypes: ['m7i.large', 'm6i.large'] });
  const condition = (type: string) => garden.condition(key, type);
  const patience = { timeout: PATIENCE_MS, interval: 200 };
  operator.look(key);
  await expect.poll(() => condition('InfrastructureReady')?.status, patience).toBe('True');
  expect(condition('CapacityAvailable')).toMatchObject({
    status: 'True',
    reason: 'Alternative',
    codes: ['ERR_INFRA_RESOURCES_DEPLETED'],
  });
  expect(condition('CapacityAvailable')?.message).toContain(`sold out: m7i.large in ${REGION}a, ${REGION}b of aws`);
  expect(garden.events.filter((event) => event.startsWith('Warning CapacityDepleted'))).toEqual([
    expect.stringContaining('InsufficientInstanceCapacity'),
  ]);
  const groups = cloud.resources({ account: account.id, type: 'aws:eks:NodeGroup' });
  expect(groups.map(({ inputs }) => [inputs.instanceTypes, inputs.scalingConfig.desiredSize])).toEqual([
    [['m6i.large'], 2],
  ]);
  expect(['aws:eks:Cluster', 'aws:ec2:Vpc'].map(count)).toEqual([1, 1]);
  garden.delete(key);
  operator.look(key);
  await expect.poll(() => garden.clusters.has(key), patience).toBe(false);
  expect(cloud.resources({ account: account.id }).map(({ id }) => id)).toEqual([]);
});
