import { CoppiceError } from '../../operator/api/errors.ts';
import type { DNSContext, DNSZone, ProviderDNS } from '../dns.ts';
import { claimedName, claimName, claimOf } from './ownership.ts';
import { planRecord, planRemoval, type RecordChange, type SeenRecordSet } from './plan.ts';
import { chooseZone } from './zone-choice.ts';

/** The operations that a cloud's DNS must provide; ownership is decided here. */
export interface DNSZonesClient<Zone extends DNSZone = DNSZone> {
  readonly withoutAccount?: boolean;
  /** All zones of the account. */
  zones(ctx: Omit<DNSContext, 'owner'>): Promise<Zone[]>;
  /** Records of types A, AAAA, CNAME and TXT at exactly these names. */
  recordsAt(ctx: DNSContext, zone: Zone, names: readonly string[]): Promise<SeenRecordSet[]>;
  /** At least all TXT record sets of the zone. */
  texts(ctx: Omit<DNSContext, 'owner'>, zone: Zone): Promise<SeenRecordSet[]>;
  /** Applies the changes: atomically where the cloud can, otherwise in this order. Fails when `before` is outdated. */
  change(ctx: DNSContext, zone: Zone, changes: readonly RecordChange[]): Promise<void>;
}

/** A provider's DNS on top of its cloud's client. */
export function recordsIn<Zone extends DNSZone>(client: DNSZonesClient<Zone>): ProviderDNS {
  const seenAt = (ctx: DNSContext, zone: DNSZone, name: string) =>
    client.recordsAt(ctx, zone as Zone, [name, claimName(name)]);
  const change = async (ctx: DNSContext, zone: DNSZone, changes: readonly RecordChange[]) => {
    if (changes.length === 0) return false;
    await client.change(ctx, zone as Zone, changes);
    return true;
  };
  return {
    ...(client.withoutAccount && { withoutAccount: true }),
    zoneOf: async (ctx, domain, choice) => chooseZone(await client.zones(ctx), domain, choice),
    async ensure(ctx, zone, wanted) {
      const { foreign, changes } = planRecord(await seenAt(ctx, zone, wanted.name), wanted, ctx.owner);
      if (foreign === undefined) return change(ctx, zone, changes);
      throw new CoppiceError('ERR_INFRA_DEPENDENCIES', `${foreign}: it is left alone`, {
        advice: 'Take that record away if nobody needs it, or use another domain.',
      });
    },
    remove: async (ctx, zone, name) => change(ctx, zone, planRemoval(await seenAt(ctx, zone, name), name, ctx.owner)),
    async claimed(ctx) {
      const zones = await client.zones(ctx);
      const found = await Promise.all(
        zones.map(async (zone) =>
          (await client.texts(ctx, zone)).flatMap(({ name, type, values }) => {
            const about = claimedName(name);
            const claim = type === 'TXT' && values.length === 1 ? claimOf(values[0]!) : undefined;
            if (about === undefined || !claim) return [];
            const { garden, namespace, name: cluster } = claim;
            return [{ zone, name: about, owner: { garden, namespace, name: cluster } }];
          }),
        ),
      );
      return found.flat();
    },
  };
}
