import type { DNSContext, ProviderDNS, ZoneChoice } from '../../providers/dns.ts';
import type { CloudProfile } from '../api/cloudprofile.ts';
import { type CoppiceError, configurationProblem } from '../api/errors.ts';
import { API_VERSION } from '../api/group.ts';
import type { Shoot } from '../api/shoot.ts';
import { accountKeyOf, type CredentialsUse, usedByBindingFor } from './credentials.ts';
import { credentialsOfShoot } from './shoot-account.ts';
import { type AccountsSide, usedCredentials } from './used-credentials.ts';

/** Where the credentials of a DNS name are. `kind` absent: the cluster's own credentials are used. */
export interface DNSCredentials {
  namespace: string;
  kind?: 'CredentialsBinding' | 'Secret' | 'WorkloadIdentity';
  name?: string;
}

/** A DNS name that a shoot's API server shall have. */
export interface WantedName {
  host: string;
  /**
   * Whether the domain is the tenant's or the platform's. Also written into status.advertisedAddresses and the
   * kubeconfig.
   */
  domain: 'external' | 'internal-domain';
  /** Name of the provider that hosts the zone. */
  provider: string;
  choice: ZoneChoice;
  credentials: DNSCredentials;
  /** Why no provider can be asked for it. */
  problem?: CoppiceError;
}

/** Provider of DNS zones by name; undefined: the provider hosts no zones. */
export type DNSProviders = (provider: string) => ProviderDNS | undefined;

type Side = Pick<
  AccountsSide,
  'garden' | 'gardenID' | 'clusters' | 'bindings' | 'credentials' | 'identities' | 'tokens' | 'log' | 'now'
>;

/** The provider that hosts the zone of a name, with the context of its calls. Rejects with CoppiceErrors. */
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
  // The platform's credentials are sent only to endpoints that the platform configured, never to those of a profile
  // that a tenant chose.
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
 * Credentials for a DNS name: the ones named, always in the namespace of the object that names them, or the cluster's
 * own. Throws CoppiceErrors.
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
 * The CloudProfile with the cloud's endpoints: the shoot's own if it is of that cloud, else the profile named like the
 * cloud, else the first of that cloud, else an empty one.
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

/** DNS is global, but API calls need a region, for example to assume a role at AWS. */
const regionOf = ({ spec }: CloudProfile, shoot: Shoot | undefined): string => {
  const known = spec.regions.map(({ name }) => name);
  const region = shoot?.spec.region;
  return region !== undefined && known.includes(region) ? region : (spec.defaults?.region ?? known[0] ?? 'us-east-1');
};
