import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { createCA, issue } from '../../../../operator/pki/certificates.ts';
import { aws } from '../../../kit/cloud/aws/model.ts';
import { azure } from '../../../kit/cloud/azure/model.ts';
import { configurationFor, REGIONS } from '../../../kit/cloud/configuration.ts';
import { gcp } from '../../../kit/cloud/gcp/model.ts';
import { type CloudName, type FakeCloud, fakeCloud, type WebEndpoints } from '../../../kit/cloud/index.ts';
import { createOperations, type Operations } from '../../../kit/cloud/operations.ts';
import { openStore } from '../../../kit/cloud/store.ts';
import { jwt } from '../../providers/jwt.ts';

const MODELS = { aws, gcp, 'azure-native': azure };

/** Fake clouds over TLS, by a certificate that all of this process trusts: the clouds' own clients show their tokens to nobody else. */
export async function cloudOverTLS(): Promise<FakeCloud> {
  const ca = await createCA({ commonName: 'fake clouds', days: 2 });
  const tls = await issue(ca, { commonName: 'a fake cloud', ipAddresses: ['127.0.0.1'], usages: ['server'], days: 2 });
  setDefaultCACertificates([...getCACertificates('default'), ca.cert]);
  return fakeCloud({ tls });
}

/** How AWS' clients come to the fake AWS, as an account with its own secret or another; they ask once. */
export function awsOptions(
  cloud: FakeCloud,
  web: WebEndpoints['aws'],
  { secret, number = 1 }: { secret?: string | undefined; number?: number } = {},
) {
  const account = cloud.account('aws', number);
  const region = 'eu-central-1';
  return {
    region,
    endpoint: web('', region),
    credentials: { accessKeyId: account.key, secretAccessKey: secret ?? account.secret },
    maxAttempts: 1,
  };
}

/** Makes resources of the first account as a program of Pulumi does, without a plugin's process. */
export function operationsOf(cloud: FakeCloud, name: CloudName): Operations {
  const model = MODELS[name];
  const settings = model.settings(configurationFor(cloud.account(name), REGIONS[name]), {});
  const unexpected = (): never => {
    throw new Error('nobody asked for that');
  };
  const host = { now: Date.now, sleep: async () => {}, exit: unexpected, killEngine: unexpected };
  return createOperations(model, openStore(cloud.dir), () => settings, host);
}

/** Whose tokens accounts trust here. */
export const TRUSTED = {
  issuer: 'https://garden.example',
  subject: 'system:serviceaccount:shop:me',
  audience: 'clouds',
};

/** A token of the garden's issuer. */
export const identityToken = (subject = TRUSTED.subject): string =>
  jwt({ iss: TRUSTED.issuer, sub: subject, aud: [TRUSTED.audience], exp: Math.floor(Date.now() / 1000) + 600 });
