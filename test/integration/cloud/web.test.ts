import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import type { ErrorCode } from '../../../operator/api/errors.ts';
import { silent } from '../../../operator/kube/log.ts';
import { awsClusters } from '../../../providers/aws/index.ts';
import { azureClusters } from '../../../providers/azure/index.ts';
import type { CloudContext, ManagedClusters } from '../../../providers/cloud.ts';
import { gcpClusters } from '../../../providers/gcp/index.ts';
import type { StackRunner } from '../../../providers/pulumi/stack-runner.ts';
import { tagsOf } from '../../../providers/tags.ts';
import type { Account, CloudName } from '../../kit/cloud/index.ts';
import { cloudForFile, REGIONS, T } from './testbed.ts';

const fake = cloudForFile();
/** Nothing here is made by Pulumi. */
const noRunner = {} as StackRunner;
let managed: Record<CloudName, ManagedClusters>;

beforeAll(async () => {
  const web = await fake.cloud.web();
  managed = {
    aws: awsClusters(noRunner, web.aws),
    gcp: gcpClusters(noRunner, web.gcp),
    'azure-native': azureClusters(noRunner, web.azure),
  };
});
afterEach(() => fake.cloud.faults.clear());

const contextFor = (name: CloudName, account: Account): CloudContext => ({
  owner: { technicalID: 'shop--blue', uid: '6d0b7c1e', name: 'blue', namespace: 'shop' },
  account,
  region: REGIONS[name],
  profile: { metadata: { name }, spec: {} } as unknown as CloudProfile,
  state: { url: 'file:///nowhere', passphrase: '', env: {} },
  log: silent,
  signal: new AbortController().signal,
  now: () => new Date(),
});

const UNAUTHENTICATED: ErrorCode = 'ERR_INFRA_UNAUTHENTICATED';
const LIMITED: ErrorCode = 'ERR_INFRA_RATE_LIMITS_EXCEEDED';

const CLOUDS: [cloud: CloudName, permission: string, token: string, inputs: Record<string, unknown>][] = [
  ['aws', 'eks:CreateCluster', T.vpc, { cidrBlock: '10.0.0.0/16' }],
  ['gcp', 'container.clusters.create', T.gke, { location: REGIONS.gcp, name: 'it' }],
  [
    'azure-native',
    'Microsoft.ContainerService/managedClusters/write',
    T.group,
    { resourceGroupName: 'it', location: REGIONS['azure-native'] },
  ],
];

describe.each(CLOUDS)('%s over HTTP', (name, permission, token, inputs) => {
  const check = (account: Account) => managed[name].checkAccount(contextFor(name, account));

  it('identifies its accounts, and their missing permissions', async () => {
    const account = fake.cloud.account(name);
    expect(await check(account)).toEqual({ id: account.id, missing: [] });
    fake.cloud.faults.set({ denied: [permission] });
    expect(await check(account)).toEqual({ id: account.id, missing: [permission] });
  });

  it('refuses unknown and revoked credentials', async () => {
    const account = fake.cloud.account(name);
    const other = fake.cloud.account(name, 2);
    // Ids and names of one account, secrets of another.
    const mixed = {
      'serviceaccount.json': account.credentials['serviceaccount.json']?.replaceAll('@', '@no.'),
      accessKeyID: account.credentials.accessKeyID,
      secretAccessKey: other.credentials.secretAccessKey,
      clientSecret: other.credentials.clientSecret,
    };
    const given = Object.entries(mixed).filter(([key]) => key in account.credentials);
    const wrong = { ...account, credentials: { ...account.credentials, ...Object.fromEntries(given) } } as Account;
    await expect(check(wrong)).rejects.toMatchObject({ code: UNAUTHENTICATED });
    fake.cloud.faults.set({ revoked: [account.key] });
    await expect(check(account)).rejects.toMatchObject({ code: UNAUTHENTICATED });
    expect(await check(other)).toMatchObject({ id: other.id });
  });

  it('throttles', async () => {
    fake.cloud.faults.set({ throttle: { perSecond: 0 } });
    await expect(check(fake.cloud.account(name))).rejects.toMatchObject({ code: LIMITED });
  });

  it('shows resources made by Pulumi to their owner only', async () => {
    const mine = contextFor(name, fake.cloud.account(name));
    const plugin = await fake.plugin(name);
    const marked = { ...inputs, [name === 'gcp' ? 'resourceLabels' : 'tags']: tagsOf(mine.owner) };
    const { id } = await plugin.create(token, 'it', marked);
    const [shown] = (await managed[name].tagged?.(mine)) ?? [];
    expect(shown).toMatchObject({ id: expect.stringContaining(id), owner: { uid: mine.owner.uid } });
    expect(await managed[name].tagged?.(contextFor(name, fake.cloud.account(name, 2)))).toEqual([]);
  });
});
