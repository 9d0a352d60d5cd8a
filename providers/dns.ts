import type { KubeClient } from '../operator/kube/client.ts';
import type { CloudContext } from './cloud.ts';

export type RecordType = 'A' | 'AAAA' | 'CNAME' | 'TXT';

/** All values of a name and type. */
export interface RecordSet {
  /** Lower case, without final dot or wildcard. */
  name: string;
  type: RecordType;
  /** Seconds. */
  ttl: number;
  /** Addresses; names without final dot; texts without quotes. */
  values: string[];
}

/** A DNS zone in an account. */
export interface DNSZone {
  /** The provider's id. */
  id: string;
  /** Alternative ids for people, for example at Azure `<resource group>/<domain>`. */
  alsoKnownAs?: readonly string[];
  /** Lower case, without final dot. */
  domain: string;
  /** Whether only associated networks resolve it. */
  private: boolean;
}

/** Selects zones. */
export interface ZoneChoice {
  /** Absent: both; the public one of two zones with one domain. */
  visibility?: 'Public' | 'Private';
  /** Zone ids; absent or empty: all. */
  include?: readonly string[];
  exclude?: readonly string[];
}

/** Owner of a record: a cluster (namespace and name) of a garden (UID of its namespace kube-system). */
export interface RecordOwner {
  garden: string;
  namespace: string;
  name: string;
}

/** A name that a TXT record claims for some garden. */
export interface ClaimedName {
  zone: DNSZone;
  name: string;
  owner: RecordOwner;
}

/** Inputs of a call to a provider's DNS. */
export interface DNSContext extends Pick<CloudContext, 'account' | 'region' | 'profile' | 'log' | 'signal' | 'now'> {
  owner: RecordOwner;
  /** Namespace of the domain's owner in the garden, for providers with zones there. */
  objects: { client: KubeClient; namespace: string };
}

/**
 * Maintains records in existing zones. A TXT record beside each record set marks it as ours (docs/tasks/dns.md); other
 * record sets are never overwritten or deleted. Every method is idempotent; errors are CoppiceErrors with a Gardener
 * code.
 */
export interface ProviderDNS {
  /** Whether it needs no cloud account. Absent: it does. */
  readonly withoutAccount?: boolean;

  /**
   * The zone for a domain: the longest matching suffix; undefined: none. Throws ERR_CONFIGURATION_PROBLEM when
   * ambiguous.
   */
  zoneOf(ctx: DNSContext, domain: string, choice?: ZoneChoice): Promise<DNSZone | undefined>;

  /**
   * Sets the name's record set and removes our other ones. Writes nothing when correct. Throws ERR_INFRA_DEPENDENCIES
   * when a foreign record is in the way.
   * @returns whether something was written
   */
  ensure(ctx: DNSContext, zone: DNSZone, wanted: RecordSet): Promise<boolean>;

  /** Deletes our records of the name. @returns whether something was written */
  remove(ctx: DNSContext, zone: DNSZone, name: string): Promise<boolean>;

  /** All names of gardens in all zones of the account, for the sweep. Reads whole zones. */
  claimed(ctx: Omit<DNSContext, 'owner'>): Promise<ClaimedName[]>;
}
