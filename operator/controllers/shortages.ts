import type { CloudProfile } from '../api/cloudprofile.ts';
import type { CoppiceError } from '../api/errors.ts';
import { LABELS } from '../api/group.ts';
import { spotPools } from '../api/pools.ts';
import { type Shoot, shootProfileName } from '../api/shoot.ts';
import type { WorkerCluster } from '../api/workercluster.ts';
import type { DepletedOffers } from '../capacity/depleted-offers.ts';
import type { RecordEvent } from '../kube/events.ts';
import type { Informer } from '../kube/informer.ts';
import { keyOf } from '../kube/resources.ts';

interface AskedPool {
  readonly name: string;
  readonly machineType: string;
  readonly zones: readonly string[];
  readonly spot: boolean;
}

/** A request that a place refused as sold out. */
interface Refused {
  readonly recordEvent: RecordEvent;
  readonly cluster: WorkerCluster;
  readonly profile: CloudProfile;
  /** In the cluster's region. */
  readonly pools: readonly AskedPool[];
}

/**
 * Remembers sold-out pools and records an Event for each new one. If the cloud does not name a pool, only a single pool
 * can be meant.
 * @returns whether anything is new
 */
export function noteShortages(
  capacity: DepletedOffers,
  { recordEvent, cluster, profile, pools }: Refused,
  { shortages, message }: Pick<CoppiceError, 'shortages' | 'message'>,
): boolean {
  const { defaults, regions } = profile.spec;
  const region = cluster.spec.region ?? defaults?.region ?? regions[0]?.name ?? '';
  const short = shortages.length === 0 && pools.length === 1 ? [{ pool: pools[0]!.name }] : shortages;
  let isNews = false;
  for (const { pool: name, zones } of short) {
    const pool = pools.find((asked) => asked.name === name);
    if (!pool) continue;
    const told = {
      part: name,
      profile: profile.metadata.name,
      region,
      machineType: pool.machineType,
      zones: zones ?? pool.zones,
      spot: pool.spot,
    };
    if (!capacity.note(cluster.metadata.uid ?? '', told)) continue;
    isNews = true;
    const where = told.zones.length > 0 ? told.zones.join(', ') : region;
    const what = `${pool.spot ? 'spot ' : ''}${pool.machineType} in ${where} is sold out`;
    recordEvent(
      cluster,
      'Warning',
      'CapacityDepleted',
      `pool ${name}: ${what} (ERR_INFRA_RESOURCES_DEPLETED): ${message}`,
    );
  }
  return isNews;
}

/** Like noteShortages, for a WorkerCluster's Shoot; a Shoot made by a person has no alternatives. */
export function shootIsShort(
  deps: {
    readonly clusters: Pick<Informer<WorkerCluster>, 'get'>;
    readonly profiles: Pick<Informer<CloudProfile>, 'get'>;
    readonly capacity: DepletedOffers;
    readonly recordEvent: RecordEvent;
  },
  shoot: Shoot,
  error: CoppiceError,
): void {
  const cluster = deps.clusters.get(keyOf(shoot));
  const profile = deps.profiles.get(shootProfileName(shoot.spec) ?? '');
  const isOwn = shoot.metadata.ownerReferences?.some(({ uid }) => uid === cluster?.metadata.uid);
  if (!cluster || !profile || !isOwn) return;
  const spot = spotPools(cluster);
  const pools = (shoot.spec.provider.workers ?? []).map(({ name, machine, zones = [], labels }) => ({
    name,
    machineType: machine.type,
    zones,
    spot: spot.has(labels?.[LABELS.alternativeOf] ?? name),
  }));
  noteShortages(deps.capacity, { recordEvent: deps.recordEvent, cluster, profile, pools }, error);
}
