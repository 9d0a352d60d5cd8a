import type { Owner } from '../cloud.ts';
import type { Call } from '../json-api.ts';
import type { WantedResource } from '../pulumi/request.ts';
import { callGoogle, type Endpoints } from './google-api.ts';
import { keyRingName, SECRETS_KEY, serviceAccountMember } from './names.ts';

/** The fields of google.iam.v1's Policy that are read. */
interface Policy {
  bindings?: { role: string; members?: string[]; condition?: unknown }[];
}

/** Location of a grant. */
interface Place {
  endpoints: Endpoints;
  project: string;
  region: string;
  owner: Owner;
  token: string;
  signal: AbortSignal;
}

/** Resource with the grant: how its policy is read, and its import id. */
interface Granted {
  name: string;
  policy: Pick<Call, 'method' | 'url' | 'headers' | 'body'>;
}

/**
 * Grant types of the programs. Grants have no owner; these are on, or for, resources with the owner's UID in their
 * name. Names: "Import" of google_project_iam_member and google_kms_crypto_key_iam in
 * hashicorp/terraform-provider-google.
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

/** Import id of an existing grant. Its member defaults to the owner's service account while unknown. */
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
