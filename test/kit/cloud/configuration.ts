import type { Account, CloudName } from './model.ts';

export const REGIONS: Record<CloudName, string> = {
  aws: 'eu-central-1',
  gcp: 'europe-west3',
  'azure-native': 'germanywestcentral',
};

/** Configuration of a provider that uses the account, as a stack's configuration has it. */
export function configurationFor(account: Account, region = REGIONS[account.cloud]): Record<string, unknown> {
  const { cloud, credentials } = account;
  if (cloud === 'aws') return { region, accessKey: credentials.accessKeyID, secretKey: credentials.secretAccessKey };
  if (cloud === 'gcp') return { region, project: account.id, credentials: credentials['serviceaccount.json'] };
  return {
    location: region,
    clientId: credentials.clientID,
    clientSecret: credentials.clientSecret,
    subscriptionId: credentials.subscriptionID,
    tenantId: credentials.tenantID,
  };
}
