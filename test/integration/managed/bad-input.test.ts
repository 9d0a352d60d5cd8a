import { expect, it } from 'vitest';
import type { ErrorCode } from '../../../operator/api/errors.ts';
import { eksForFile, REGION } from './eks.ts';

/** Half a dozen engine runs on two busy cores. */
const PATIENCE_MS = 10 * 60_000;

const testbed = eksForFile();

it('each failure of a managed cluster becomes a condition with its code, and finally it exists once', {
  timeout: PATIENCE_MS,
}, async () => {
  const { cloud, garden, account, count } = testbed;
  const operator = await testbed.operator();
  const patience = { timeout: PATIENCE_MS, interval: 100 };
  const key = garden.apply('one', { cloudProvider: 'aws', machineType: 'm7i.large' });
  const retry = () => {
    garden.annotate(key, { 'gardener.cloud/operation': 'retry' });
    operator.look(key);
  };
  /** The condition that says so, in one line, and how many networks there are by then. */
  const ends = async (type: string, code: ErrorCode, networks: number) => {
    await expect.poll(() => garden.condition(key, type)?.codes, { ...patience, message: code }).toEqual([code]);
    const { status, message } = garden.condition(key, type)!;
    expect(status).toBe('False');
    expect(message).not.toMatch(/\n|\bat \w+ \(/);
    expect(message).not.toContain(account.credentials.secretAccessKey);
    expect(count('aws:ec2:Vpc')).toBe(networks);
    await expect
      .poll(() => garden.clusters.get(key)?.status?.lastOperation?.state, patience)
      .toMatch(/^(Error|Failed)$/);
  };

  garden.credentials('cloud', { ...account.credentials, secretAccessKey: 'wrong' });
  operator.look(key);
  await ends('CredentialsValid', 'ERR_INFRA_UNAUTHENTICATED', 0);

  garden.stateURL = 'file:///proc/no/directory';
  garden.credentials('cloud', { ...account.credentials });
  operator.credentialsChanged();
  await ends('InfrastructureReady', 'ERR_RETRYABLE_INFRA_DEPENDENCIES', 0);

  garden.stateURL = testbed.stateURL;
  cloud.faults.set({ quotas: { 'aws:ec2:Vpc': 0 } });
  retry();
  await ends('InfrastructureReady', 'ERR_INFRA_QUOTA_EXCEEDED', 0);

  // AWS answers whoever has not opened a region as if the keys were wrong.
  cloud.faults.set({ closedRegions: [REGION] });
  retry();
  await ends('CredentialsValid', 'ERR_INFRA_UNAUTHENTICATED', 0);

  cloud.faults.set({ throttle: { perSecond: 1 } });
  retry();
  await ends('InfrastructureReady', 'ERR_INFRA_RATE_LIMITS_EXCEEDED', count('aws:ec2:Vpc'));

  cloud.faults.set({ latencyMs: { 'aws:eks:Cluster': { create: 2_000 } } });
  retry();
  await expect.poll(() => count('aws:eks:Cluster'), patience).toBe(1);
  cloud.faults.set({ revoked: [account.key] });
  await ends('CredentialsValid', 'ERR_INFRA_UNAUTHENTICATED', 1);

  cloud.faults.clear();
  retry();
  await expect.poll(() => garden.condition(key, 'InfrastructureReady')?.status, patience).toBe('True');
  expect(['aws:ec2:Vpc', 'aws:eks:Cluster', 'aws:eks:NodeGroup'].map(count)).toEqual([1, 1, 1]);
  expect(garden.clusters.get(key)?.status?.lastErrors).toEqual(
    expect.not.arrayContaining([expect.objectContaining({ taskID: 'apply' })]),
  );
});
