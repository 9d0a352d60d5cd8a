import { generateKeyPairSync } from 'node:crypto';
import { digits } from '../digits.ts';
import type { CloudModel, CloudResource } from '../model.ts';
import { errors } from './errors.ts';
import { kindOf } from './kinds.ts';
import { lookups } from './lookups.ts';
import { typeLikeKind, types } from './types.ts';

const tags = ({ inputs, defaultTags }: CloudResource): Record<string, string> => ({
  ...defaultTags,
  ...(inputs.labels ?? inputs.resourceLabels ?? inputs.nodeConfig?.resourceLabels),
});

/** What of a service account's or a workload's JSON tells who it is. */
function proofOf(text: string): Record<string, string> {
  try {
    const json = JSON.parse(text) as Record<string, string>;
    const impersonated = /serviceAccounts\/([^:]+):/.exec(json.service_account_impersonation_url ?? '')?.[1];
    return {
      key: json.private_key_id ?? '',
      secret: json.private_key ?? '',
      ...(impersonated && { workload: impersonated }),
      project: json.project_id ?? '',
    };
  } catch {
    return { broken: text };
  }
}

/** Parts of an id that say something, in the order in which import takes them: `p/r/n` of `projects/p/regions/r/subnetworks/n`. */
const significant = (id: string): string[] => {
  const parts = id
    .replace(/^https:\/\/[^/]+\/(?:compute\/)?v1\//, '')
    // A template's unique self link.
    .replace(/\?uniqueId=\d+$/, '')
    .split('/')
    .filter((part) => part !== 'global');
  return parts[0] === 'projects' ? parts.filter((_, index) => index % 2 === 1) : parts;
};

/** Google Cloud Platform. */
export const gcp: CloudModel = {
  name: 'gcp',
  types: new Map(types.map((type) => [type.type, type])),
  unknownType: (type) => typeLikeKind(type),
  errors,
  regionalIds: false,
  settings(configuration, environment) {
    const text = configuration.credentials ?? environment.GOOGLE_CREDENTIALS ?? environment.GOOGLE_CLOUD_KEYFILE_JSON;
    const proof: Record<string, string> = text ? proofOf(text) : {};
    const token = configuration.accessToken ?? environment.GOOGLE_OAUTH_ACCESS_TOKEN;
    const project = configuration.project ?? environment.GOOGLE_PROJECT ?? environment.GOOGLE_CLOUD_PROJECT;
    return {
      region: configuration.region ?? environment.GOOGLE_REGION ?? '',
      defaultTags: configuration.defaultLabels ?? {},
      allowedAccounts: [],
      proof: { ...proof, ...(token && { token }), project: project ?? proof.project ?? '' },
    };
  },
  accountOf: ({ proof }, accounts) =>
    accounts.find(
      (account) =>
        account.cloud === 'gcp' &&
        account.id === proof.project &&
        (proof.token === `ya29.${account.key}` ||
          proof.workload === account.principal ||
          (account.key === proof.key && account.secret === proof.secret)),
    ),
  newAccount(number) {
    const id = `coppice-test-${number}`;
    const principal = `coppice@${id}.iam.gserviceaccount.com`;
    const key = digits(40, 'gcp', id);
    const { privateKey: secret } = generateKeyPairSync('rsa', {
      modulusLength: 2048,
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    });
    const json = {
      type: 'service_account',
      project_id: id,
      private_key_id: key,
      private_key: secret,
      client_email: principal,
      client_id: digits(20, id).replaceAll(/[a-f]/g, '7'),
      token_uri: 'https://oauth2.googleapis.com/token',
    };
    return { cloud: 'gcp', id, principal, key, secret, credentials: { 'serviceaccount.json': JSON.stringify(json) } };
  },
  checkConfiguration: ({ proof }) =>
    proof.broken === undefined ? undefined : 'JSON credentials are not valid: unexpected end of JSON input',
  isCalled(resource, id) {
    const [own, asked] = [significant(resource.id), significant(id)];
    // Import takes ids without what the provider's configuration says: without the project, then the region.
    return asked.length > 1 ? own.slice(-asked.length).join('/') === asked.join('/') : resource.id === id;
  },
  autoname: (logicalName, digits) => `${logicalName}-${digits.slice(0, 7)}`,
  commonOutputs: (resource) => ({
    id: resource.id,
    project: resource.inputs.project ?? resource.account,
    ...(kindOf(resource.type).id.includes('{region}') && { region: resource.region }),
    effectiveLabels: tags(resource),
    pulumiLabels: tags(resource),
  }),
  tags,
  lookups,
};
