import type { Owner } from '../cloud.ts';
import type { Call } from '../json-api.ts';
import type { WantedResource } from '../pulumi/request.ts';
import { callGoogle, type Endpoints } from './google-api.ts';
import { keyRingName, SECRETS_KEY, serviceAccountMember } from './names.ts';

/** Policy of google.iam.v1, as far as it is used. */
interface Policy {
  bindings?: { role: string; members?: string[]; condition?: unknown }[];
}

/** Where a grant would be. */
interface Place {
  endpoints: Endpoints;
  project: string;
  region: string;
  owner: Owner;
  token: string;
  signal: AbortSignal;
}

/** What something is granted on: how its policy is asked for, and what Pulumi's import calls it. */
interface Granted {
  name: string;
  policy: Pick<Call, 'method' | 'url' | 'headers' | 'body'>;
}

/**
 * The types of grants that the programs declare. Nothing says whose a grant is; these are on, or for, what has the owner's UID in its name.
 * Names: "Import" of google_project_iam_member and google_kms_crypto_key_iam in hashicorp/terraform-provider-google.
 */
const GRANTED: Readonly<Record<string, (place: Place) => Granted>> = {
  'gcp:projects/iAMMember:IAMMember': ({ endpoints, project }) => ({
    name: project,
    policy: {
      method: 'POST',
      url: `${endpoints.resourceManager}/v1/projects/${project}:getIamPolicy`,
      headers: { 'content-type': 'application/json' },
      body: '{}',
    },
  }),
  'gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember': ({ endpoints, project, region, owner }) => {
    const ring = keyRingName(owner);
    const path = `projects/${project}/locations/${region}/keyRings/${ring}/cryptoKeys/${SECRETS_KEY}`;
    return {
      name: `${project}/${region}/${ring}/${SECRETS_KEY}`,
      policy: { url: `${endpoints.kms}/v1/${path}:getIamPolicy` },
    };
  },
};

export const isGrant = (type: string): boolean => type in GRANTED;

/** Id, as Pulumi imports it, of a grant that exists. Its member is the owner's service account where that is not known yet. */
export async function findGrant({ type, inputs }: WantedResource, place: Place): Promise<string | undefined> {
  const { name, policy } = GRANTED[type]!(place);
  const { role, member = serviceAccountMember(place.owner, place.project) } = inputs as Record<string, string>;
  const { token, signal } = place;
  const told = await callGoogle<Policy>(
    { ...policy, token, signal, what: `the policy of ${name} cannot be read` },
    { absent: true },
  );
  const isThere = told?.bindings?.some(
    (binding) => binding.role === role && !binding.condition && binding.members?.includes(member),
  );
  return isThere ? `${name} ${role} ${member}` : undefined;
}
