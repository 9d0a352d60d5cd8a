import { NETWORK_POLICIES_ENFORCED } from '../../api/conditions.ts';
import { CoppiceError, errorText } from '../../api/errors.ts';
import { type Seed, type SeedStatus, unactedSeedFields } from '../../api/seed.ts';
import type { Shoot } from '../../api/shoot.ts';
import { refuseOther, type SeedRegistry, seedIdentityOf } from '../../clusters/seed-access.ts';
import type { SeedAddresses } from '../../clusters/seed-addresses.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Informer } from '../../kube/informer.ts';
import { keyOf, SEEDS } from '../../kube/resources.ts';
import { BUCKETS_DRIFTED, BUCKETS_READY } from '../backup/conditions.ts';
import type { SeedBuckets } from '../backup/seed-bucket.ts';
import { conditionBefore, type Said, say, withConditions } from '../conditions.ts';
import { hold } from '../finalizer.ts';
import { writeStatus } from '../status-writer.ts';
import type { NetworkLook, NetworkTrials } from './network-trials.ts';

/** Result of the last check of a seed. */
interface SeedFound {
  /** Failure of the check; absent: it answered. */
  failure?: unknown;
  /** UID of its namespace kube-system. */
  identity?: string;
  /** Kubernetes version. */
  version?: string;
  unknownHost?: SeedAddresses['unknownHost'];
  network?: NetworkLook | undefined;
}

const ADDRESSES_KNOWN = 'AddressesKnown';
/** Most named shoots in a condition. */
const NAMED = 5;

/**
 * Conditions of a seed, without its bucket. Earlier results stay while it does not answer. Pure.
 * @param hosted shoots with anything in it, as `namespace/name`
 * @param localMachines see SeedDependencies
 */
function seedConditions(
  seed: Seed,
  { failure, network, unknownHost }: SeedFound,
  hosted: readonly string[],
  localMachines: boolean,
): (Said<'Seed'> | undefined)[] {
  const before = seed.status?.conditions;
  const addresses =
    failure === undefined
      ? addressesKnown(unknownHost, seed.spec.networks, localMachines)
      : conditionBefore('Seed', before, ADDRESSES_KNOWN);
  return [
    ready(seed, failure),
    network?.condition ?? conditionBefore('Seed', before, NETWORK_POLICIES_ENFORCED),
    addresses,
    allFieldsActedOn(seed),
    seed.metadata.deletionTimestamp === undefined ? undefined : inUse(hosted),
  ];
}

function ready({ spec }: Seed, failure: unknown): Said<'Seed'> {
  const where = spec.kubeconfigRef ? 'the seed' : 'the garden, which is the seed';
  if (failure === undefined) return say('Ready', true, 'SeedReady', `${where} answers and can host control planes`);
  if (failure instanceof CoppiceError) return say('Ready', false, 'NotUsable', errorText(failure), [failure.code]);
  return say(
    'Ready',
    false,
    'NotReachable',
    `${where} does not answer: ${errorText(failure)}. Check its kubeconfig and that it runs`,
    ['ERR_RETRYABLE_INFRA_DEPENDENCIES'],
  );
}

function inUse(hosted: readonly string[]): Said<'Seed'> {
  const more = hosted.length > NAMED ? ` and ${hosted.length - NAMED} more` : '';
  const named = hosted.slice(0, NAMED).join(', ') + more;
  return say('Deleting', true, 'InUse', `deletion waits for the shoots that the seed hosts: ${named}`);
}

function allFieldsActedOn(seed: Seed): Said<'Seed'> | undefined {
  const unacted = unactedSeedFields(seed);
  if (unacted.length === 0) return undefined;
  return say('AllFieldsActedOn', false, 'KeptOnly', `these fields are stored without effect: ${unacted.join(', ')}`);
}

/** Condition when NetworkPolicies cannot name the host of a Seed's kubeconfig. Pure. */
function addressesKnown(
  unknown: SeedAddresses['unknownHost'],
  { blockCIDRs }: Seed['spec']['networks'],
  localMachines: boolean,
): Said<'Seed'> | undefined {
  if (!unknown) return undefined;
  const what = `the operator finds no address of ${unknown.host}, which the Seed's kubeconfig names (${unknown.why})`;
  if (!localMachines)
    return say(
      ADDRESSES_KNOWN,
      'Unknown',
      'NoLocalMachines',
      `${what}. This operator makes no machines of provider local, which alone could reach it`,
    );
  if (blockCIDRs?.length)
    return say(
      ADDRESSES_KNOWN,
      'Unknown',
      'RangesNamed',
      `${what}. Machines of provider local do not reach it if it is in spec.networks.blockCIDRs, which you named`,
    );
  return say(
    ADDRESSES_KNOWN,
    false,
    'NameNotResolved',
    `${what}: machines of provider local may reach it. Name its ranges in spec.networks.blockCIDRs`,
  );
}

export interface SeedDependencies {
  readonly garden: KubeClient;
  readonly seeds: Informer<Seed>;
  readonly shoots: Informer<Shoot>;
  readonly registry: SeedRegistry;
  readonly seedBuckets: Pick<SeedBuckets, 'look'>;
  readonly networkTrials: Pick<NetworkTrials, 'look'>;
  /** Whether clusters may have machines that are pods of a seed. */
  readonly localMachines: boolean;
  now(): Date;
}

/** Interval of checking a reachable seed; its caches notice a loss earlier. */
const LOOK_AGAIN_MS = 5 * 60_000;

/** Shoots with anything in a seed, as `namespace/name`. */
const hostedBy = (name: string, shoots: readonly Shoot[]): string[] =>
  shoots.filter(({ status, spec }) => (status?.seedName ?? spec.seedName) === name).map(keyOf);

/**
 * Maintains the connection to a seed, and reports whether it can host shoots. A seed in use has a finalizer: without it
 * its control planes could not be deleted. Records its identity at first contact.
 */
export async function reconcileSeed(
  deps: SeedDependencies,
  name: string,
  signal: AbortSignal,
): Promise<{ requeueAfterMs?: number }> {
  const seed = deps.seeds.get(name);
  const hosted = seed ? hostedBy(name, deps.shoots.list()) : [];
  const deleting = seed?.metadata.deletionTimestamp !== undefined;
  if (!seed || (deleting && hosted.length === 0)) {
    await deps.registry.close(name);
    if (seed) await hold(deps, SEEDS, deps.seeds, seed, false, { signal });
    return {};
  }
  if (hosted.length > 0) await hold(deps, SEEDS, deps.seeds, seed, true, { signal });
  const found = await look(deps, seed, signal);
  const said = seedConditions(seed, found, hosted, deps.localMachines);
  const tell = (bucket: readonly (Said<'Seed'> | undefined)[]) => {
    const status: SeedStatus = {
      ...seed.status,
      conditions: withConditions<'Seed'>(seed.status?.conditions, [...said, ...bucket], deps.now()),
      ...(found.network?.triedAt && { networkTriedAt: found.network.triedAt }),
      ...(found.version && { kubernetesVersion: found.version }),
      ...(found.failure === undefined && found.identity && { clusterIdentity: found.identity }),
      observedGeneration: seed.metadata.generation,
    };
    return writeStatus(deps.garden, deps.seeds, seed, status, signal);
  };
  // A hanging bucket must not delay the report of reachability.
  if (seed.spec.backup)
    await tell(
      ([BUCKETS_READY, BUCKETS_DRIFTED] as const).map((type) => conditionBefore('Seed', seed.status?.conditions, type)),
    );
  const bucket = await deps.seedBuckets.look(seed, signal);
  await tell(bucket?.conditions ?? []);
  if (found.failure !== undefined) throw found.failure;
  const next = [LOOK_AGAIN_MS, bucket?.requeueAfterMs, found.network?.requeueAfterMs].filter((ms) => ms !== undefined);
  return { requeueAfterMs: Math.min(...next) };
}

/** Reads the seed's identity. A failure is part of the result, for the status. */
async function look(deps: SeedDependencies, seed: Seed, signal: AbortSignal): Promise<SeedFound> {
  const found: SeedFound = {};
  try {
    const access = await deps.registry.open(seed, signal);
    found.identity = await seedIdentityOf(access.client, signal);
    // Another cluster may answer behind the same address.
    if (found.identity !== access.identity) await deps.registry.close(seed.metadata.name);
    refuseOther(seed, found.identity);
    await access.keepControlPlanePriority(signal);
    found.version = (await access.client.serverVersion()).gitVersion.replace(/^v/, '');
    found.unknownHost = access.addresses.unknownHost;
    if (!seed.metadata.deletionTimestamp) found.network = deps.networkTrials.look(seed, access.client, signal);
  } catch (error) {
    found.failure = error;
  }
  return found;
}
