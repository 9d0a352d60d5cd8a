import type { HubSpec } from '../../api/hub.ts';
import type { Informer } from '../../kube/informer.ts';
import type { KubeObject } from '../../kube/resources.ts';

/** The hub side of the demo: where its work is, and which scheduler moves it. */
export interface Fleet {
  readonly hub: Pick<HubSpec, 'type'> & Partial<HubSpec>;
  /** Objects that the garden needs before the Hub. */
  readonly objects: readonly KubeObject[];
  /** Name of the scheduler, in words. */
  readonly scheduler: string;

  /** Starts the scheduler. @returns a signal aborted, with the reason, when the scheduler ends by itself */
  begin(signal: AbortSignal): Promise<AbortSignal>;
  /** Informers whose changes affect the answers below. */
  caches(): readonly Informer[];
  /** How the hub calls the member, in words. */
  nameOf(member: string): string;
  /** Kinds of a member's objects, in words. */
  readonly kinds: string;
  /** Objects of the member that still exist, each in words. */
  leftOf(member: string): string[];

  /** Runs as many replicas as the private cluster has room for. */
  fill(signal: AbortSignal): Promise<void>;
  /** Whether the scheduler knows that the member is full. */
  isFull(member: string): boolean;
  /** Raises replicas to what one more node can hold. */
  rise(signal: AbortSignal): Promise<void>;
  /** Raises replicas beyond what the private cluster can ever hold. */
  peak(signal: AbortSignal): Promise<void>;
  /** Sentence about work without a place. Undefined: nothing reported yet. */
  refusal(): string | undefined;
  /** Lowers replicas to the first number. @returns that number, in words */
  ebb(signal: AbortSignal): Promise<string>;
  /** Stops the scheduler and the informers. */
  end(): Promise<void>;
}
