import { addressRange, addressRangesOverlap } from '../api/address-range.ts';
import type { CloudProfile } from '../api/cloudprofile.ts';
import { findCondition, isTrue } from '../api/conditions.ts';
import { ANNOTATIONS } from '../api/group.ts';
import { matchesLabels } from '../api/label-selector.ts';
import { readCount } from '../api/quantity.ts';
import type { Seed } from '../api/seed.ts';
import type { Shoot } from '../api/shoot.ts';

/** The only input of placement. */
export interface PlacementInput {
  shoot: Shoot;
  profile: CloudProfile;
  seeds: readonly Seed[];
  /** Number of shoots on each seed, by name; this shoot, if already placed, is excluded. */
  shootsPerSeed: Readonly<Record<string, number>> | ReadonlyMap<string, number>;
  /** Whether the machines are outside the seed and must reach the API server from there. Absent: no. */
  outside?: boolean;
}

/** Selects seeds that may host the shoot. */
interface Filter {
  name: string;
  /** Why the seed cannot host the shoot, as the end of "<seed> ..."; undefined if it can. */
  against(seed: Seed, input: PlacementInput): string | undefined;
}

/** Number of shoots on a seed. */
export const shootsOn = (seed: Seed, { shootsPerSeed }: PlacementInput): number =>
  (shootsPerSeed instanceof Map
    ? shootsPerSeed.get(seed.metadata.name)
    : (shootsPerSeed as Readonly<Record<string, number>>)[seed.metadata.name]) ?? 0;

/** Limit of shoots on a seed; Infinity where it states none. */
export function shootLimit(seed: Seed): number {
  const limit = seed.status?.allocatable?.shoots;
  return limit === undefined ? Number.POSITIVE_INFINITY : readCount(limit);
}

/** Name of the filter that drops seeds which are not Ready. */
export const READY_FILTER = 'ready';

/** Whether the seed's readiness was ever checked. */
export const wasAsked = ({ status }: Seed): boolean => findCondition(status?.conditions, 'Ready') !== undefined;

/** In order of application: cheap and permanent filters first, so that the reported reason is the simplest. */
export const FILTERS: readonly Filter[] = [
  {
    name: 'seedName',
    against: ({ metadata }, { shoot }) =>
      shoot.spec.seedName !== undefined && shoot.spec.seedName !== metadata.name
        ? `is not the seed that spec.seedName names (${shoot.spec.seedName})`
        : undefined,
  },
  {
    name: 'deletion',
    against: ({ metadata }) => (metadata.deletionTimestamp ? 'is being deleted' : undefined),
  },
  {
    name: 'visible',
    against: ({ spec }, { shoot }) =>
      spec.settings?.scheduling?.visible === false && shoot.spec.seedName === undefined
        ? 'takes no shoots unless they name it (settings.scheduling.visible is false)'
        : undefined,
  },
  {
    name: 'emergencyStop',
    against: ({ metadata }) =>
      metadata.annotations?.[ANNOTATIONS.emergencyStop] === 'true' ? 'is stopped by its annotation' : undefined,
  },
  {
    name: 'profileSelector',
    against: (seed, { profile }) => {
      const selector = profile.spec.seedSelector;
      return selector && !matchesLabels(seed.metadata.labels ?? {}, selector)
        ? `has not the labels that CloudProfile ${profile.metadata.name} asks for`
        : undefined;
    },
  },
  {
    name: 'shootSelector',
    against: (seed, { shoot }) => {
      const selector = shoot.spec.seedSelector;
      return selector && !matchesLabels(seed.metadata.labels ?? {}, selector)
        ? 'has not the labels that spec.seedSelector asks for'
        : undefined;
    },
  },
  {
    name: 'provider',
    against: (seed, { shoot, profile }) => {
      const said = [profile.spec.seedSelector?.providerTypes, shoot.spec.seedSelector?.providerTypes].filter(
        (types) => types !== undefined,
      );
      const allowed = said.length > 0 ? said : [[shoot.spec.provider.type]];
      return allowed.every((types) => hasProviderType(seed, types))
        ? undefined
        : `runs on provider ${seed.spec.provider.type}`;
    },
  },
  {
    name: 'zones',
    against: ({ spec }, { shoot }) => {
      const zones = spec.provider.zones?.length ?? 0;
      const tolerance = shoot.spec.controlPlane?.highAvailability?.failureTolerance.type;
      return tolerance === 'zone' && zones < 3
        ? `has ${zones} zones, and tolerating the failure of a zone takes 3`
        : undefined;
    },
  },
  {
    name: 'accessRestrictions',
    against: ({ spec }, { shoot }) => {
      const offered = new Set((spec.accessRestrictions ?? []).map((restriction) => restriction.name));
      const missing = (shoot.spec.accessRestrictions ?? []).filter(({ name }) => !offered.has(name));
      return missing.length > 0
        ? `does not offer the access restriction ${missing.map(({ name }) => name).join(', ')}`
        : undefined;
    },
  },
  {
    name: 'taints',
    against: ({ spec }, { shoot }) => {
      const tolerated = (key: string, value: string | undefined) =>
        (shoot.spec.tolerations ?? []).some(
          (toleration) => toleration.key === key && (toleration.value === undefined || toleration.value === value),
        );
      const taint = (spec.taints ?? []).find(({ key, value }) => !tolerated(key, value));
      return taint ? `has the taint ${taint.key}, which the shoot does not tolerate` : undefined;
    },
  },
  {
    name: 'networks',
    against: ({ spec }, { shoot, profile }) => {
      const { pods, services, nodes } = shoot.spec.networking ?? {};
      const ours = {
        pods: pods ?? spec.networks.shootDefaults?.pods ?? profile.spec.defaults?.pods,
        services: services ?? spec.networks.shootDefaults?.services ?? profile.spec.defaults?.services,
        nodes,
      };
      const theirs = { pods: spec.networks.pods, services: spec.networks.services, nodes: spec.networks.nodes };
      for (const [mine, range] of Object.entries(ours)) {
        for (const [its, other] of Object.entries(theirs)) {
          // Machines that are pods of the seed use the seed's node addresses.
          if (range === undefined || other === undefined || mine === 'nodes') continue;
          if (addressRangesOverlap(addressRange(range), addressRange(other)))
            return `has the ${its} range ${other}, which overlaps with the shoot's ${mine} (${range})`;
        }
      }
      return undefined;
    },
  },
  {
    name: 'exposure',
    against: ({ spec }, { outside }) =>
      outside && spec.exposure?.type !== 'LoadBalancer'
        ? `exposes API servers by ${spec.exposure?.type ?? 'ClusterIP'} only, where machines in a cloud cannot reach them (spec.exposure.type LoadBalancer is needed)`
        : undefined,
  },
  {
    name: 'capacity',
    against: (seed, input) => {
      const [limit, hosted] = [shootLimit(seed), shootsOn(seed, input)];
      return hosted >= limit ? `hosts ${hosted} of ${limit} shoots` : undefined;
    },
  },
  {
    // Last: seeds dropped here could host the shoot if they were Ready.
    name: READY_FILTER,
    against: (seed) =>
      isTrue(seed.status?.conditions, 'Ready')
        ? undefined
        : wasAsked(seed)
          ? 'is not Ready'
          : 'has not been asked yet whether it answers',
  },
];

/** Whether the seed's provider type is among these; "*" matches any. */
const hasProviderType = (seed: Seed, types: readonly string[]): boolean =>
  types.includes('*') || types.includes(seed.spec.provider.type);
