import type { CloudProfile } from '../../operator/api/cloudprofile.ts';
import { CoppiceError } from '../../operator/api/errors.ts';
import type { CloudAccount } from '../cloud.ts';

/** Key of the Secret with the service account's key, as Gardener names it (provider-gcp pkg/gcp/serviceaccount.go). */
export const KEY_FILE = 'serviceaccount.json';

/** A key of a service account, as far as it is used. */
export interface ServiceAccountKey {
  email: string;
  /** PEM. */
  privateKey: string;
  keyID?: string;
}

/** Who asks, and how it is proven. */
interface Credentials {
  project: string;
  /** A key, a token of somebody whom Google is to trust, or whatever the machine that the operator runs on is to Google. */
  proof: ServiceAccountKey | Federation | 'machine';
}

/** Workload identity federation: who shows the token to the pool becomes the service account. */
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
 * What the Secret holds, checked. Throws ERR_INFRA_UNAUTHENTICATED when it holds no key of a service account. With workload identity there
 * are projectID, workloadIdentityProvider, serviceAccountEmail and token in place of a key. Without any, but with
 * `projectID`, it is the operator's machine that asks: only where the profile says `providerConfig: {machineIdentity: true}`,
 * because whoever may write a Secret would otherwise borrow the operator's rights.
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

/** They become parts of URLs, or say who may ask; the token goes to Google only. */
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
  // Other types name a URL or a command by which a token is got: it would be ours that is asked or run.
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

/** It becomes a part of URLs. */
function checkedProject(project: unknown): string {
  if (typeof project === 'string' && PROJECT.test(project)) return project;
  throw unusable(
    'the GCP credentials name no project',
    'Correct project_id: 6 to 30 lowercase letters, digits and dashes.',
  );
}

/** Whether the plugin can get tokens for itself. */
export const hasKey = (proof: Credentials['proof']): proof is ServiceAccountKey =>
  proof !== 'machine' && 'privateKey' in proof;

/** Google's own, always: a key file may name any host here, and would have the plugin show its signature there. */
const TOKEN_URI = 'https://oauth2.googleapis.com/token';

/**
 * By what the plugin gcp authenticates (hashicorp/terraform-provider-google website/docs/guides/provider_reference.html.markdown); all of
 * it is secret. The key file is written anew from what was checked. Who has no key stands in it as an access token, `token`.
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
