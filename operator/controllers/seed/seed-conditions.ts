import { NETWORK_POLICIES_ENFORCED } from '../../api/conditions.ts';
import { CoppiceError, errorText } from '../../api/errors.ts';
import { type Seed, unactedSeedFields } from '../../api/seed.ts';
import type { SeedAddresses } from '../../clusters/seed-addresses.ts';
import { conditionBefore, type Said, say } from '../conditions.ts';
import type { NetworkLook } from './network-trials.ts';

/** Result of the last check of a seed. */
export interface SeedFound {
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
export function seedConditions(
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
