import type { CloudProfile } from '../../operator/api/cloudprofile.ts';
import { CoppiceError } from '../../operator/api/errors.ts';
import type { CloudAccount } from '../cloud.ts';

/** Key of the Secret with the service account key, named as by Gardener (provider-gcp pkg/gcp/serviceaccount.go). */
export const KEY_FILE = 'serviceaccount.json';

/** The fields of a service account key that are read. */
export interface ServiceAccountKey {
  email: string;
  /** PEM. */
  privateKey: string;
  keyID?: string;
}

/** Identity and proof of a caller. */
interface Credentials {
  project: string;
  /** A key, a federated token, or the identity of the operator's machine at Google. */
  proof: ServiceAccountKey | Federation | 'machine';
}

/** Workload identity federation: the token's bearer impersonates the service account. */
export interface Federation {
  /** Full name: `projects/N/locations/global/workloadIdentityPools/P/providers/Q`. */
  provider: string;
  email: string;
  token: string;
}

/** A project ID: 6 to 30 characters (cloud.google.com/resource-manager/docs/creating-managing-projects). */
const PROJECT = /^[a-z][a-z0-9-]{4,28}[a-z0-9]$/;
const EMAIL = /^[a-z0-9-]+@[a-z0-9.-]+\.gserviceaccount\.com$/;

const PROVIDER = /^projects\/\d+\/locations\/global\/workloadIdentityPools\/[a-z0-9-]+\/providers\/[a-z0-9-]+$/;

const unusable = (message: string, advice: string): CoppiceError =>
  new CoppiceError('ERR_INFRA_UNAUTHENTICATED', message, { advice });

const MAKE_A_KEY = `Make a key of a service account (JSON) and put it into the Secret under the key ${KEY_FILE}.`;

/**
 * Credentials of the Secret, validated. Throws ERR_INFRA_UNAUTHENTICATED without a service account key. With workload
 * identity: projectID, workloadIdentityProvider, serviceAccountEmail and token in place of a key. With `projectID`
 * alone the operator's machine identity is used: only where the profile sets `providerConfig: {machineIdentity: true}`,
 * since writers of Secrets would otherwise borrow the operator's rights.
 */
export function credentialsOf({ credentials }: CloudAccount, profile: CloudProfile): Credentials {
  const file = credentials[KEY_FILE];
  if (file !== undefined) return keyOf(file);
  const project = credentials.projectID?.trim();
  if (!project) throw unusable(`the GCP credentials lack ${KEY_FILE}`, MAKE_A_KEY);
  if (credentials.workloadIdentityProvider !== undefined)
    return { project: checkedProject(project), proof: federationOf(credentials) };
  if (profile.spec.providerConfig?.machineIdentity !== true) {
    throw unusable(
      `the GCP credentials have no key, and profile ${profile.metadata.name} does not lend the operator's own identity`,
      `${MAKE_A_KEY} Or let who keeps the profile set providerConfig.machineIdentity.`,
    );
  }
  return { project: checkedProject(project), proof: 'machine' };
}

/** Validated, since the values become parts of URLs or name the caller; the token is sent to Google only. */
function federationOf(credentials: CloudAccount['credentials']): Federation {
  const { workloadIdentityProvider = '', serviceAccountEmail = '', token = '' } = credentials;
  const [provider, email] = [workloadIdentityProvider.trim(), serviceAccountEmail.trim()];
  const wrong = [
    ...(PROVIDER.test(provider) ? [] : ['workloadIdentityProvider']),
    ...(EMAIL.test(email) ? [] : ['serviceAccountEmail']),
    ...(token.trim() === '' ? ['token'] : []),
  ];
  if (wrong.length === 0) return { provider, email, token: token.trim() };
  throw unusable(
    `${wrong.join(', ')} of the GCP credentials: missing or malformed`,
    'Workload identity needs the full name of a provider of a pool, the address of a service account, and a token.',
  );
}

function keyOf(file: string): Credentials {
  const { type, project_id, private_key_id, private_key, client_email } = parsed(file);
  // Other types name a URL or command that returns a token: the operator would request or run it.
  if (type !== 'service_account') {
    throw unusable(`${KEY_FILE} of the GCP credentials is of type ${String(type)}, not service_account`, MAKE_A_KEY);
  }
  if (typeof client_email !== 'string' || !EMAIL.test(client_email)) {
    throw unusable(`client_email in ${KEY_FILE} of the GCP credentials is no service account's address`, MAKE_A_KEY);
  }
  if (typeof private_key !== 'string' || private_key === '') {
    throw unusable(`${KEY_FILE} of the GCP credentials has no private_key`, MAKE_A_KEY);
  }
  return {
    project: checkedProject(project_id),
    proof: {
      email: client_email,
      privateKey: private_key,
      ...(typeof private_key_id === 'string' && { keyID: private_key_id }),
    },
  };
}

function parsed(file: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(file)) as Record<string, unknown>;
  } catch {
    throw unusable(`${KEY_FILE} of the GCP credentials is no JSON`, MAKE_A_KEY);
  }
}

/** Validates a project, which becomes part of URLs. */
function checkedProject(project: unknown): string {
  if (typeof project === 'string' && PROJECT.test(project)) return project;
  throw unusable(
    'the GCP credentials name no project',
    'Correct project_id: 6 to 30 lowercase letters, digits and dashes.',
  );
}

/** Whether the plugin can obtain tokens itself. */
export const hasKey = (proof: Credentials['proof']): proof is ServiceAccountKey =>
  proof !== 'machine' && 'privateKey' in proof;

/** Fixed to Google's: a key file may name any host, which would receive the plugin's signature. */
const TOKEN_URI = 'https://oauth2.googleapis.com/token';

/**
 * Environment with the plugin gcp's credentials (hashicorp/terraform-provider-google
 * website/docs/guides/provider_reference.html.markdown); all secret. The key file is rebuilt from validated fields.
 * Without a key, `token` is the access token.
 */
export function pluginCredentials({ project, proof }: Credentials, token?: string): Record<string, string> {
  if (!hasKey(proof)) return { GOOGLE_OAUTH_ACCESS_TOKEN: token! };
  const key = {
    type: 'service_account',
    project_id: project,
    ...(proof.keyID !== undefined && { private_key_id: proof.keyID }),
    private_key: proof.privateKey,
    client_email: proof.email,
    token_uri: TOKEN_URI,
  };
  return { GOOGLE_CREDENTIALS: JSON.stringify(key) };
}
