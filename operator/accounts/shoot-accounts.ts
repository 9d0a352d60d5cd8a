import type { CloudContext } from '../../providers/cloud.ts';
import type { DNSContext, ProviderDNS } from '../../providers/dns.ts';
import type { CloudProfile } from '../api/cloudprofile.ts';
import type { Shoot } from '../api/shoot.ts';
import { type DNSProviders, dnsOf, type WantedName } from './dns-account.ts';
import { accountOfShoot, namesAccount } from './shoot-account.ts';
import type { AccountsSide } from './used-credentials.ts';

/** What the controller of shoots asks about accounts. */
export interface ShootAccounts {
  /** Whether the shoot, or the WorkerCluster that it was made for, names credentials of a cloud. */
  namesAccount(shoot: Shoot): boolean;
  /** The account of the tenant that the shoot's machines are in. Rejects with CoppiceErrors. */
  account(shoot: Shoot, profile: CloudProfile, signal: AbortSignal): Promise<CloudContext>;
  /** Who keeps the zone of a name of the shoot, and all that a call to it takes. Rejects with CoppiceErrors. */
  dns(shoot: Shoot, name: WantedName, signal: AbortSignal): Promise<{ dns: ProviderDNS; ctx: DNSContext }>;
}

/** The accounts of shoots in one garden. */
export const shootAccounts = (
  side: AccountsSide,
  providers: DNSProviders,
  profiles: { list(): CloudProfile[] },
): ShootAccounts => ({
  namesAccount: (shoot) => namesAccount(shoot, side.clusters),
  account: (shoot, profile, signal) => accountOfShoot(side, shoot, profile, signal),
  dns: (shoot, name, signal) => dnsOf(side, providers, profiles, shoot, name, signal),
});
