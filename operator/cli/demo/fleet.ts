import type { HubSpec } from '../../api/hub.ts';
import type { Informer } from '../../kube/informer.ts';
import type { KubeObject } from '../../kube/resources.ts';

/** Where the work of the demo is, and who moves it: what a Hub leads to. */
export interface Fleet {
  readonly hub: Pick<HubSpec, 'type'> & Partial<HubSpec>;
  /** What else there is in the garden before the Hub. */
  readonly objects: readonly KubeObject[];
  /** By whom work is moved, in words. */
  readonly scheduler: string;

  /** Has somebody who moves work. @returns aborted with the reason when that ends by itself */
  begin(signal: AbortSignal): Promise<AbortSignal>;
  /** What all that is asked here changes with. */
  caches(): readonly Informer[];
  /** How a cluster of this name in the hub is called there, in words. */
  nameOf(member: string): string;
  /** Kinds of what there is of a member, in words. */
  readonly kinds: string;
  /** What there is still of it, each in words. */
  leftOf(member: string): string[];

  /** Has as many replicas run as the private cluster takes. */
  fill(signal: AbortSignal): Promise<void>;
  /** Whether the scheduler knows that this member is full. */
  isFull(member: string): boolean;
  /** Has as many asked for as it takes with another node. */
  rise(signal: AbortSignal): Promise<void>;
  /** Has more of them asked for than it ever takes. */
  peak(signal: AbortSignal): Promise<void>;
  /** What has no place, a sentence; undefined: nobody says so yet. */
  refusal(): string | undefined;
  /** Has no more asked for than at first. @returns that, in words */
  ebb(signal: AbortSignal): Promise<string>;
  /** Ends what was begun, and forgets what was read. */
  end(): Promise<void>;
}
