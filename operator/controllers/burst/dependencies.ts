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

/** What a garden is seen with. */
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
  /** What a hub says now. Throws where it does not answer. */
  hear(hub: Hub, signal: AbortSignal): Promise<HubSays>;
  /**
   * Of a policy that only says what it would do: whether others are to find it done, as where all are asked what they would do. Absent: nobody
   * is.
   */
  claims?(policy: BurstPolicy): boolean;
  /**
   * What a hub has placed on a member and would move; a sentence: it moves nothing. undefined: hubs of its type do not tell. Throws where
   * it does not answer.
   */
  placedWork(hub: Hub, member: string, signal: AbortSignal): Promise<readonly PlacedWork[] | string | undefined>;
  /**
   * What a hub asks about work that it holds, where no policy names it. undefined: nothing there asks. Absent: nobody answers, as where one only
   * looks what would be decided. Throws where it does not answer.
   */
  asksOf?(hub: Hub, signal: AbortSignal): Promise<Asking | undefined>;
  now(): Date;
}

/** What decides about clusters works with. */
export interface BurstDependencies extends BurstSightDependencies {
  readonly garden: KubeClient;
  /** With index BY_HUB. */
  readonly policies: Informer<BurstPolicy>;
  readonly capacity: Pick<DepletedOffers, 'known' | 'interrupted'>;
  readonly sizes: Pick<DecidedSizes, 'decide' | 'sleepOrder' | 'orderSleep'>;
  readonly receipts: Receipts<StoredReceipt>;
  readonly metrics: Registry;
  /** Writes an answer into a hub. Throws as KubeClient does; error 409: somebody has changed the object since. */
  writeStatus?(hub: Hub, part: StatusPart, signal: AbortSignal): Promise<void>;
  recordEvent: Core['recordEvent'];
}

/** The receipts of all policies, by `namespace/name`, in the operator's namespace: a tenant writes none of them. */
export const burstReceipts = (garden: ReceiptClient, operatorNamespace: string): Receipts<StoredReceipt> =>
  new Receipts<StoredReceipt>(
    garden,
    (key) => operatorReceiptPlace(operatorNamespace, burstReceiptName(key), ROLES.burstReceipt),
    { marks: ({ policy }) => ({ [LABELS.burstPolicy]: policy.name }), whyNotUnderstood },
  );
