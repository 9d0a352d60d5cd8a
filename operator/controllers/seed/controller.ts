import { findCondition, NETWORK_POLICIES_ENFORCED } from '../../api/conditions.ts';
import { CoppiceError, errorText } from '../../api/errors.ts';
import { type Seed, type SeedStatus, unactedSeedFields } from '../../api/seed.ts';
import type { Shoot } from '../../api/shoot.ts';
import { identityOf, refuseOther, type SeedRegistry } from '../../clusters/seed-access.ts';
import type { SeedAddresses } from '../../clusters/seed-addresses.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Informer } from '../../kube/informer.ts';
import { keyOf, SEEDS } from '../../kube/resources.ts';
import { BUCKETS_DRIFTED, BUCKETS_READY } from '../backup/conditions.ts';
import type { SeedBuckets } from '../backup/seed-bucket.ts';
import { type Said, say, withConditions } from '../conditions.ts';
import { hold } from '../finalizer.ts';
import { writeStatus } from '../status-writer.ts';
import type { NetworkLook, NetworkTrials } from './network-trials.ts';

export interface SeedDependencies {
  readonly garden: KubeClient;
  readonly seeds: Informer<Seed>;
  readonly shoots: Informer<Shoot>;
  readonly registry: SeedRegistry;
  readonly seedBuckets: Pick<SeedBuckets, 'look'>;
  readonly networkTrials: Pick<NetworkTrials, 'look'>;
  /** Whether clusters may be made whose machines are pods of a seed. */
  readonly localMachines: boolean;
  now(): Date;
}

const ADDRESSES_KNOWN = 'AddressesKnown';
/** How many shoots a condition names. */
const NAMED = 5;
/** A seed that answers is not asked again for this long; its caches notice earlier when it goes away. */
const LOOK_AGAIN_MS = 5 * 60_000;

/** Shoots that have anything in a seed, as `namespace/name`. */
const hostedBy = (name: string, shoots: readonly Shoot[]): string[] =>
  shoots.filter(({ status, spec }) => (status?.seedName ?? spec.seedName) === name).map(keyOf);

/** Said where NetworkPolicies cannot name the host that a Seed's kubeconfig leads to. Pure. @param localMachines see SeedDependencies */
function addressesKnown(
  unknown: SeedAddresses['unknownHost'],
  { blockCIDRs }: Seed['spec']['networks'],
  localMachines: boolean,
): Said | undefined {
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

/**
 * Keeps the connection to a seed open and says in its status whether it can host shoots. A seed in use is held: without it nobody could take its
 * control planes away. Which cluster it is, is written down at first contact.
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
  let identity: string | undefined;
  let failure: unknown;
  let version: string | undefined;
  let network: NetworkLook | undefined;
  let unknown: SeedAddresses['unknownHost'];
  try {
    const access = await deps.registry.open(seed, signal);
    identity = await identityOf(access.client, signal);
    // Behind the same address there may be another cluster by now.
    if (identity !== access.identity) await deps.registry.close(name);
    refuseOther(seed, identity);
    version = (await access.client.serverVersion()).gitVersion.replace(/^v/, '');
    unknown = access.addresses.unknownHost;
    if (!deleting) network = deps.networkTrials.look(seed, access.client, signal);
  } catch (error) {
    failure = error;
  }
  const ready = failure === undefined;
  const where = seed.spec.kubeconfigRef ? 'the seed' : 'the garden, which is the seed';
  const condition = ready
    ? say('Ready', true, 'SeedReady', `${where} answers and can host control planes`)
    : failure instanceof CoppiceError
      ? say('Ready', false, 'NotUsable', errorText(failure), [failure.code])
      : say(
          'Ready',
          false,
          'NotReachable',
          `${where} does not answer: ${errorText(failure)}. Check its kubeconfig and that it runs`,
          ['ERR_RETRYABLE_INFRA_DEPENDENCIES'],
        );
  const named = hosted.slice(0, NAMED).join(', ') + (hosted.length > NAMED ? ` and ${hosted.length - NAMED} more` : '');
  const inUse = deleting
    ? say('Deleting', true, 'InUse', `deletion waits for the shoots that the seed hosts: ${named}`)
    : undefined;
  const unacted = unactedSeedFields(seed);
  const kept =
    unacted.length > 0
      ? say('AllFieldsActedOn', false, 'KeptOnly', `these fields are stored without effect: ${unacted.join(', ')}`)
      : undefined;
  const before = seed.status?.conditions;
  // What was found out stays true while the seed does not answer.
  const enforced = network?.condition ?? findCondition(before, NETWORK_POLICIES_ENFORCED);
  const addresses = ready
    ? addressesKnown(unknown, seed.spec.networks, deps.localMachines)
    : findCondition(before, ADDRESSES_KNOWN);
  const said = [condition, enforced, addresses, kept, inUse];
  const tell = (bucket: readonly (Said | undefined)[]) => {
    const status: SeedStatus = {
      ...seed.status,
      conditions: withConditions(before, [...said, ...bucket], deps.now()),
      ...(network?.triedAt && { networkTriedAt: network.triedAt }),
      ...(version && { kubernetesVersion: version }),
      ...(ready && identity && { clusterIdentity: identity }),
      observedGeneration: seed.metadata.generation,
    };
    return writeStatus(deps.garden, deps.seeds, seed, status, signal);
  };
  // A bucket that hangs for minutes must not hide whether the seed answers.
  if (seed.spec.backup)
    await tell([BUCKETS_READY, BUCKETS_DRIFTED].map((type) => findCondition(seed.status?.conditions, type)));
  const bucket = await deps.seedBuckets.look(seed, signal);
  await tell(bucket?.conditions ?? []);
  if (!ready) throw failure;
  const next = [LOOK_AGAIN_MS, bucket?.requeueAfterMs, network?.requeueAfterMs].filter((ms) => ms !== undefined);
  return { requeueAfterMs: Math.min(...next) };
}
