import { beforeAll, describe, expect, it } from 'vitest';
import { startPlugin } from '../../kit/cloud/client.ts';
import type { Account, CloudName } from '../../kit/cloud/index.ts';
import { cloudForFile, configurationFor, REGIONS, T } from './testbed.ts';

const fake = cloudForFile();

const NETWORKS: Record<CloudName, [token: string, inputs: Record<string, unknown>]> = {
  aws: [T.vpc, { cidrBlock: '10.0.0.0/16' }],
  gcp: [T.network, { name: 'credentials' }],
  'azure-native': [T.group, { resourceGroupName: 'credentials', location: REGIONS['azure-native'] }],
};
const wrong = (account: Account): Account => ({
  ...account,
  credentials: {
    ...account.credentials,
    secretAccessKey: 'no',
    clientSecret: 'no',
    'serviceaccount.json':
      account.credentials['serviceaccount.json']?.replace('PRIVATE KEY-----\\nMI', 'PRIVATE KEY-----\\nNO') ?? '',
  },
});

const CLOUDS: [cloud: CloudName, unauthenticated: string, denied: [action: string, text: string], closed: string][] = [
  [
    'aws',
    'api error AuthFailure: AWS was not able to validate the provided access credentials',
    ['ec2:CreateVpc', 'api error UnauthorizedOperation: You are not authorized to perform this operation.'],
    'api error AuthFailure',
  ],
  [
    'gcp',
    'oauth2: cannot fetch token: 400 Bad Request\nResponse: {"error":"invalid_grant","error_description":"Invalid JWT Signature."}',
    ['compute.networks.create', "Error 403: Required 'compute.networks.create' permission"],
    "Permission denied on 'locations/",
  ],
  [
    'azure-native',
    'AADSTS7000215: Invalid client secret provided.',
    ['Microsoft.Resources/subscriptions/resourcegroups/write', 'Status=403 Code="AuthorizationFailed"'],
    'Status=403 Code="RequestDisallowedByAzure"',
  ],
];

describe.each(CLOUDS)('%s', (name, unauthenticated, [action, denied], closed) => {
  const [token, inputs] = NETWORKS[name];
  let account: Account;
  beforeAll(() => {
    account = fake.cloud.account(name);
  });

  it('refuses unknown credentials', async () => {
    const plugin = await fake.plugin(name, { account: wrong(account) });
    await expect(plugin.create(token, 'it', inputs)).rejects.toThrow(unauthenticated);
    expect(fake.cloud.resources({ type: token })).toEqual([]);
  });

  it('refuses credentials that are revoked during their use', async () => {
    const plugin = await fake.plugin(name);
    const { id } = await plugin.create(token, 'it', inputs);
    fake.cloud.faults.set({ revoked: [account.key] });
    await expect(plugin.delete(token, id)).rejects.toThrow(unauthenticated.split('\n')[0]);
    expect(fake.cloud.resources({ type: token })).toHaveLength(1);
    fake.cloud.faults.clear();
    await plugin.delete(token, id);
  });

  it('refuses what the credentials do not permit', async () => {
    const plugin = await fake.plugin(name);
    fake.cloud.faults.set({ denied: [action] });
    await expect(plugin.create(token, 'it', inputs)).rejects.toThrow(denied);
    fake.cloud.faults.clear();
  });

  it('refuses a closed region', async () => {
    const plugin = await fake.plugin(name);
    // Networks of Google are nowhere in particular.
    const regional =
      name === 'gcp'
        ? ['gcp:compute/router:Router', { name: 'r', network: 'n', region: REGIONS.gcp }]
        : [token, inputs];
    fake.cloud.faults.set({ closedRegions: [REGIONS[name]] });
    await expect(plugin.create(regional[0] as string, 'it', regional[1] as object)).rejects.toThrow(closed);
    fake.cloud.faults.clear();
  });

  it('reads credentials from the environment', async () => {
    const { credentials } = account;
    const environment: Record<CloudName, Record<string, string>> = {
      aws: {
        AWS_ACCESS_KEY_ID: credentials.accessKeyID!,
        AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey!,
        AWS_REGION: REGIONS.aws,
      },
      gcp: { GOOGLE_CREDENTIALS: credentials['serviceaccount.json']!, GOOGLE_PROJECT: account.id },
      'azure-native': {
        ARM_CLIENT_ID: credentials.clientID!,
        ARM_CLIENT_SECRET: credentials.clientSecret!,
        ARM_SUBSCRIPTION_ID: credentials.subscriptionID!,
      },
    };
    const plugin = await startPlugin(fake.cloud, name, { environment: environment[name] });
    try {
      const { id } = await plugin.create(token, 'it', inputs);
      await plugin.delete(token, id);
    } finally {
      await plugin.close();
    }
  });
});

describe("the configuration check of the fake cloud's plugin", () => {
  it('reports what is wrong with the configuration for aws', async () => {
    const account = fake.cloud.account('aws');
    const plugin = await fake.plugin('aws');
    const check = (configuration: object) => plugin.checkConfiguration(configuration);
    expect(await check(configurationFor(account))).toEqual([]);
    expect(await check(configurationFor(wrong(account)))).toEqual([
      expect.stringContaining('Invalid credentials configured.'),
    ]);
    expect(await check({ region: REGIONS.aws })).toEqual([
      expect.stringContaining('No valid credential sources found.'),
    ]);
    expect(await check({ ...configurationFor(wrong(account)), skipCredentialsValidation: 'true' })).toEqual([]);
    expect(await check({ ...configurationFor(account), allowedAccountIds: JSON.stringify(['1']) })).toHaveLength(1);
  });

  it('reports credentials for gcp that are no JSON', async () => {
    const plugin = await fake.plugin('gcp');
    expect(await plugin.checkConfiguration({ credentials: '{' })).toEqual([expect.stringContaining('not valid')]);
  });
});
