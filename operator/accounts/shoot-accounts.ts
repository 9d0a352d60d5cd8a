import type { CloudContext } from '../../providers/cloud.ts';
import type { DNSContext, ProviderDNS } from '../../providers/dns.ts';
import type { CloudProfile } from '../api/cloudprofile.ts';
import type { Shoot } from '../api/shoot.ts';
import { type DNSProviders, dnsOf, type WantedName } from './dns-account.ts';
import { accountOfShoot, namesAccount } from './shoot-account.ts';
import type { AccountsSide } from './used-credentials.ts';

/** The shoot controller's view of cloud accounts. */
export interface ShootAccounts {
  /** Whether the shoot, or the WorkerCluster that it was made for, names credentials of a cloud. */
  namesAccount(shoot: Shoot): boolean;
  /** The tenant's account that holds the shoot's machines. Rejects with CoppiceErrors. */
  account(shoot: Shoot, profile: CloudProfile, signal: AbortSignal): Promise<CloudContext>;
  /**
   * The provider that hosts the zone of a shoot's DNS name, with the context of its calls. Rejects with CoppiceErrors.
   */
  dns(shoot: Shoot, name: WantedName, signal: AbortSignal): Promise<{ dns: ProviderDNS; ctx: DNSContext }>;
}

/** ShootAccounts of one garden. */
export const shootAccounts = (
  side: AccountsSide,
  providers: DNSProviders,
  profiles: { list(): CloudProfile[] },
): ShootAccounts => ({
  namesAccount: (shoot) => namesAccount(shoot, side.clusters),
  account: (shoot, profile, signal) => accountOfShoot(side, shoot, profile, signal),
  dns: (shoot, name, signal) => dnsOf(side, providers, profiles, shoot, name, signal),
});
