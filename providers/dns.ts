import type { KubeClient } from '../operator/kube/client.ts';
import type { CloudContext } from './cloud.ts';

export type RecordType = 'A' | 'AAAA' | 'CNAME' | 'TXT';

/** All values that a name has of one type. */
export interface RecordSet {
  /** Lower case, without a dot at the end, and no wildcard. */
  name: string;
  type: RecordType;
  /** Seconds. */
  ttl: number;
  /** Addresses; names without a dot at the end; texts without quotes. */
  values: string[];
}

/** A part of DNS that an account keeps. */
export interface DNSZone {
  /** The provider's own. */
  id: string;
  /** What people also call it by, for example at Azure `<resource group>/<domain>`. */
  alsoKnownAs?: readonly string[];
  /** Lower case, without a dot at the end. */
  domain: string;
  /** Whether only networks that were told of it see it. */
  private: boolean;
}

/** Which zones may be used. */
export interface ZoneChoice {
  /** Absent: both; of two zones of one domain the public one is taken. */
  visibility?: 'Public' | 'Private';
  /** Ids; absent or empty: all. */
  include?: readonly string[];
  exclude?: readonly string[];
}

/** Whom a record belongs to: a cluster (its namespace and name) of a garden (UID of its namespace kube-system). */
export interface RecordOwner {
  garden: string;
  namespace: string;
  name: string;
}

/** A name that a TXT record says is ours, whoever's. */
export interface ClaimedName {
  zone: DNSZone;
  name: string;
  owner: RecordOwner;
}

/** What a call to a provider's DNS works for, and with. */
export interface DNSContext extends Pick<CloudContext, 'account' | 'region' | 'profile' | 'log' | 'signal' | 'now'> {
  owner: RecordOwner;
  /** Where whoever keeps the domain has their objects in the garden, for a provider whose zones are there. */
  objects: { client: KubeClient; namespace: string };
}

/**
 * Keeps records in zones that others made. A record set is ours if a TXT record beside it says so (docs/tasks/dns.md); no other
 * is ever overwritten or taken away. Every method is idempotent; errors are CoppiceErrors with a Gardener code.
 */
export interface ProviderDNS {
  /** Whether it asks no account of a cloud. Absent: it does. */
  readonly withoutAccount?: boolean;

  /**
   * The zone that has names of the domain: the longest of those that end it. Undefined when there is none.
   * Throws ERR_CONFIGURATION_PROBLEM when several would do equally.
   */
  zoneOf(ctx: DNSContext, domain: string, choice?: ZoneChoice): Promise<DNSZone | undefined>;

  /**
   * Makes the name have this record set and no other of ours. Nothing is written when it is right already.
   * Throws ERR_INFRA_DEPENDENCIES when somebody else's record is in the way.
   * @returns whether something was written
   */
  ensure(ctx: DNSContext, zone: DNSZone, wanted: RecordSet): Promise<boolean>;

  /** Takes away what is ours of the name. @returns whether something was written */
  remove(ctx: DNSContext, zone: DNSZone, name: string): Promise<boolean>;

  /** All names in all zones of the account that are some garden's, for the sweep. Reads whole zones. */
  claimed(ctx: Omit<DNSContext, 'owner'>): Promise<ClaimedName[]>;
}
