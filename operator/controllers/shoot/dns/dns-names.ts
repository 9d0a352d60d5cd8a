import { isIP } from 'node:net';
import type { RecordSet } from '../../../../providers/dns.ts';
import type { DNSCredentials, WantedName } from '../../../accounts/dns-account.ts';
import { type ClusterDNS, dnsCredentialsRef, dnsTypeOf, UNMANAGED_DNS } from '../../../api/dns.ts';
import { configurationProblem } from '../../../api/errors.ts';
import type { Seed } from '../../../api/seed.ts';
import type { Shoot } from '../../../api/shoot.ts';

/** TTL of records in seconds: how long clients may use an outdated address. Same as Gardener's DNSRecords. */
const TTL = 120;

/** `api.<domain>` of the tenant's domain. */
const ownHost = (shoot: Shoot): string | undefined => shoot.spec.dns?.domain && `api.${shoot.spec.dns.domain}`;

/** The API server's name in the platform's domain. */
function platformHost({ metadata: { name, namespace } }: Shoot, seed: Seed): string | undefined {
  const domain = seed.spec.dns?.internal?.domain;
  return domain && `api.${name}.${namespace}.${domain}`;
}

/** All names of a shoot's API server, for its certificate. Pure. */
export const hostNames = (shoot: Shoot, seed: Seed): string[] =>
  [ownHost(shoot), platformHost(shoot, seed)].filter((host) => host !== undefined);

/** Names for which the operator keeps records. Pure. @param machines name of the provider of the shoot's machines */
export function wantedNames(shoot: Shoot, seed: Seed, machines: string): WantedName[] {
  const { namespace = '' } = shoot.metadata;
  const names: WantedName[] = [];
  const own = ownHost(shoot);
  if (own) {
    const chosen = providerOf(shoot.spec.dns!, machines);
    if (chosen !== UNMANAGED_DNS) names.push({ host: own, domain: 'external', ...chosen, ...credentialsIn(namespace) });
  }
  const platform = platformHost(shoot, seed);
  const internal = seed.spec.dns?.internal;
  if (platform && internal && internal.type !== UNMANAGED_DNS) {
    const { provider, visibility } = dnsTypeOf(internal.type);
    const { credentialsRef: ref } = internal;
    names.push({
      host: platform,
      domain: 'internal-domain',
      provider,
      choice: { ...(visibility && { visibility }), ...(internal.zone && { include: [internal.zone] }) },
      credentials: {
        namespace: ref?.namespace ?? 'kube-system',
        ...(ref && { kind: ref.kind ?? 'Secret', name: ref.name }),
      },
    });
  }
  return names;

  function credentialsIn(ours: string): { credentials: DNSCredentials } {
    const chosen = primary(shoot.spec.dns!);
    return { credentials: { namespace: ours, ...(chosen && dnsCredentialsRef(chosen)) } };
  }
}

const primary = ({ providers = [] }: ClusterDNS) =>
  providers.find((one) => one.primary) ?? (providers.length === 1 ? providers[0] : undefined);

function providerOf(
  dns: ClusterDNS,
  machines: string,
): Pick<WantedName, 'provider' | 'choice' | 'problem'> | typeof UNMANAGED_DNS {
  const chosen = primary(dns);
  if (!chosen && (dns.providers ?? []).length > 0) {
    const problem = configurationProblem(
      `several DNS providers are named for ${dns.domain} and none is primary`,
      'Set primary: true on the one in spec.dns.providers that has the domain.',
    );
    return { provider: '', choice: {}, problem };
  }
  if (chosen?.type === UNMANAGED_DNS) return UNMANAGED_DNS;
  const { provider, visibility } = chosen?.type === undefined ? { provider: machines } : dnsTypeOf(chosen.type);
  return { provider, choice: { ...chosen?.zones, ...(visibility && { visibility }) } };
}

/** Record set from a name to an address or a load balancer's name. Pure. */
export function recordOf(host: string, target: string): RecordSet {
  const type = ({ 4: 'A', 6: 'AAAA' } as const)[isIP(target)] ?? 'CNAME';
  return { name: host, type, ttl: TTL, values: [target] };
}
