import type { DNSContext, ProviderDNS, ZoneChoice } from '../../providers/dns.ts';
import type { CloudProfile } from '../api/cloudprofile.ts';
import { type CoppiceError, configurationProblem } from '../api/errors.ts';
import { API_VERSION } from '../api/group.ts';
import type { Shoot } from '../api/shoot.ts';
import { accountKeyOf, type CredentialsUse, usedByBindingFor } from './credentials.ts';
import { credentialsOfShoot } from './shoot-account.ts';
import { type AccountsSide, usedCredentials } from './used-credentials.ts';

/** Where credentials are that a name is kept with. `kind` absent: those of the cluster itself. */
export interface DNSCredentials {
  namespace: string;
  kind?: 'CredentialsBinding' | 'Secret' | 'WorkloadIdentity';
  name?: string;
}

/** A name that the API server of a shoot is to have. */
export interface WantedName {
  host: string;
  /** Whose domain it is in: the tenant's, or the platform's. Also in status.advertisedAddresses and the kubeconfig. */
  domain: 'external' | 'internal-domain';
  /** Name of the provider that keeps its zone. */
  provider: string;
  choice: ZoneChoice;
  credentials: DNSCredentials;
  /** Why nobody can be asked for it. */
  problem?: CoppiceError;
}

/** Who keeps zones, by name of the provider; undefined: nobody. */
export type DNSProviders = (provider: string) => ProviderDNS | undefined;

type Side = Pick<
  AccountsSide,
  'garden' | 'gardenID' | 'clusters' | 'bindings' | 'credentials' | 'identities' | 'tokens' | 'log' | 'now'
>;

/** Who keeps the zone of a name, and all that a call to it takes. Rejects with CoppiceErrors. */
export async function dnsOf(
  side: Side,
  providers: DNSProviders,
  profiles: { list(): CloudProfile[] },
  shoot: Shoot,
  wanted: WantedName,
  signal: AbortSignal,
): Promise<{ dns: ProviderDNS; ctx: DNSContext }> {
  if (wanted.problem) throw wanted.problem;
  const dns = providers(wanted.provider);
  if (!dns) {
    throw configurationProblem(
      `provider ${wanted.provider} has no DNS`,
      'Name who has the domain in spec.dns.providers (of a seed: spec.dns.internal): aws-route53, google-clouddns, azure-dns, azure-private-dns, or unmanaged if you make the record yourself.',
    );
  }
  // The platform's credentials go where the platform says, not to endpoints of a profile that a tenant chose.
  const chooser = wanted.domain === 'internal-domain' ? undefined : shoot;
  const profile = profileOf(profiles.list(), chooser, wanted.provider);
  const account = dns.withoutAccount ? { id: wanted.credentials.namespace, credentials: {} } : await accountOf();
  const { name, namespace = '' } = shoot.metadata;
  const ctx: DNSContext = {
    owner: { garden: side.gardenID, namespace, name },
    objects: { client: side.garden, namespace: wanted.credentials.namespace },
    account,
    profile,
    region: regionOf(profile, chooser),
    log: side.log,
    signal,
    now: () => side.now(),
  };
  return { dns, ctx };

  async function accountOf() {
    const use = usedFor(side, shoot, wanted);
    return { id: accountKeyOf(use), credentials: (await usedCredentials(side, use, signal)).values };
  }
}

/**
 * Which credentials a name is kept with: those that are named, always of the namespace of who names them, or the cluster's. Throws
 * CoppiceErrors.
 */
export function usedFor(
  { clusters, bindings }: Pick<Side, 'clusters'> & { bindings: Pick<Side['bindings'], 'get'> },
  shoot: Shoot,
  { credentials: { namespace, kind, name }, provider, domain }: WantedName,
): CredentialsUse {
  if (name === undefined) {
    if (domain === 'internal-domain')
      throw configurationProblem(
        'the seed names no credentials of the account that has its internal domain',
        'Name them in spec.dns.internal.credentialsRef of the Seed.',
      );
    return credentialsOfShoot(shoot, provider, clusters, (of, binding) => bindings.get(`${of}/${binding}`));
  }
  if (kind === 'WorkloadIdentity') return { namespace, identity: name, type: provider };
  if (kind !== 'CredentialsBinding') return { namespace, secret: name };
  const advice = 'Name a binding for the provider that has the domain.';
  return usedByBindingFor(bindings.get(`${namespace}/${name}`), { namespace, name }, provider, advice);
}

/**
 * What says where the cloud's endpoints are: the shoot's own profile if it is of that cloud, the one of the cloud's name, or the first of
 * it; a bare one if there is none.
 */
function profileOf(profiles: readonly CloudProfile[], shoot: Shoot | undefined, provider: string): CloudProfile {
  const own = shoot?.spec.cloudProfile?.name ?? shoot?.spec.cloudProfileName;
  const ofCloud = profiles
    .filter(({ spec }) => spec.type === provider)
    .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  const bare: CloudProfile = {
    apiVersion: API_VERSION,
    kind: 'CloudProfile',
    metadata: { name: provider },
    spec: {
      type: provider,
      kubernetes: { versions: [] },
      machineTypes: [],
      regions: [],
    } as unknown as CloudProfile['spec'],
  };
  const named = (name: string | undefined) => ofCloud.find(({ metadata }) => metadata.name === name);
  return named(own) ?? named(provider) ?? ofCloud[0] ?? bare;
}

/** DNS is in no region, but who asks must name one, for example to assume a role at AWS. */
const regionOf = ({ spec }: CloudProfile, shoot: Shoot | undefined): string => {
  const known = spec.regions.map(({ name }) => name);
  const region = shoot?.spec.region;
  return region !== undefined && known.includes(region) ? region : (spec.defaults?.region ?? known[0] ?? 'us-east-1');
};
