import type { BurstPolicy } from '../../api/burstpolicy.ts';
import { LABELS, ROLES } from '../../api/group.ts';
import type { Hub } from '../../api/hub.ts';
import type { Membership } from '../../api/membership.ts';
import { burstReceiptName } from '../../api/names.ts';
import type { Quota } from '../../api/quota.ts';
import { type StoredReceipt, whyNotUnderstood } from '../../burst/clusters/stored-receipt.ts';
import type { DepletedOffers } from '../../capacity/depleted-offers.ts';
import type { OpenClusters } from '../../clusters/open-clusters.ts';
import type { Asking, PlacedWork, StatusPart } from '../../hubs/contract.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Informer } from '../../kube/informer.ts';
import type { Registry } from '../../kube/metrics.ts';
import { operatorReceiptPlace, type ReceiptClient, Receipts } from '../../kube/receipt.ts';
import type { Core } from '../core.ts';
import type { DecidedSizes } from '../decided-sizes.ts';
import type { ClaimantDependencies } from '../quota/claimants.ts';
import type { HubSays } from './hear-hub.ts';

/** Dependencies for observing a garden. */
export interface BurstSightDependencies extends ClaimantDependencies {
  readonly garden: Pick<KubeClient, 'create' | 'getOrUndefined'>;
  /** With index BY_HUB. */
  readonly policies: Pick<Informer<BurstPolicy>, 'byIndex'>;
  readonly hubs: Pick<Informer<Hub>, 'get'>;
  /** With index BY_HUB. */
  readonly memberships: Pick<Informer<Membership>, 'get' | 'byIndex'>;
  /** With index BY_NAMESPACE. */
  readonly quotas: Pick<Informer<Quota>, 'byIndex'>;
  readonly provider: Core['provider'];
  readonly openClusters: Pick<OpenClusters, 'get'>;
  readonly capacity: Pick<DepletedOffers, 'known'>;
  readonly decided: NonNullable<ClaimantDependencies['decided']>;
  readonly sizes: Pick<DecidedSizes, 'sleepOrder'>;
  /** Reads a hub. Throws when it does not answer. */
  hear(hub: Hub, signal: AbortSignal): Promise<HubSays>;
  /**
   * For a dry-run policy: whether others treat its decisions as done, as when all policies are previewed. Absent: no.
   */
  claims?(policy: BurstPolicy): boolean;
  /**
   * Placed work on a member that the hub would move; a sentence: it moves nothing. undefined: its type does not report
   * that. Throws when it does not answer.
   */
  placedWork(hub: Hub, member: string, signal: AbortSignal): Promise<readonly PlacedWork[] | string | undefined>;
  /**
   * Questions of a hub about held work, without a policy. undefined: none. Absent: not answered, as in previews. Throws
   * when it does not answer.
   */
  asksOf?(hub: Hub, signal: AbortSignal): Promise<Asking | undefined>;
  now(): Date;
}

/** Dependencies of the controller. */
export interface BurstDependencies extends BurstSightDependencies {
  readonly garden: KubeClient;
  /** With index BY_HUB. */
  readonly policies: Informer<BurstPolicy>;
  readonly capacity: Pick<DepletedOffers, 'known' | 'interrupted'>;
  readonly sizes: Pick<DecidedSizes, 'decide' | 'sleepOrder' | 'orderSleep'>;
  readonly receipts: Receipts<StoredReceipt>;
  readonly metrics: Registry;
  /** Writes an answer into a hub. Throws as KubeClient does; error 409: the object has changed. */
  writeStatus?(hub: Hub, part: StatusPart, signal: AbortSignal): Promise<void>;
  recordEvent: Core['recordEvent'];
}

/** Receipts of policies by `namespace/name`, in the operator's namespace, where tenants cannot write. */
export const burstReceipts = (garden: ReceiptClient, operatorNamespace: string): Receipts<StoredReceipt> =>
  new Receipts<StoredReceipt>(
    garden,
    (key) => operatorReceiptPlace(operatorNamespace, burstReceiptName(key), ROLES.burstReceipt),
    { marks: ({ policy }) => ({ [LABELS.burstPolicy]: policy.name }), whyNotUnderstood },
  );
