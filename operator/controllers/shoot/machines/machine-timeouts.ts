import type { Worker } from '../../../api/shoot-worker.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
/** Default drain timeout. Gardener's is 2 hours; bursts need a shorter one. */
const DRAIN_TIMEOUT_MS = 10 * MINUTE;

interface MachineControllerManager {
  readonly machineDrainTimeout?: string;
  readonly machineHealthTimeout?: string;
}

/** Gardener's machineControllerManager.machineDrainTimeout of the pool, milliseconds. */
export const drainTimeoutOf = (worker: Worker | undefined): number =>
  durationOf(settingsOf(worker)?.machineDrainTimeout) ?? DRAIN_TIMEOUT_MS;

/**
 * Gardener's machineControllerManager.machineHealthTimeout of the pool, milliseconds: time before an unhealthy node is
 * repaired. undefined: not set.
 */
export const healthTimeoutOf = (worker: Worker | undefined): number | undefined =>
  durationOf(settingsOf(worker)?.machineHealthTimeout);

const settingsOf = (worker: Worker | undefined): MachineControllerManager | undefined =>
  worker?.machineControllerManager as MachineControllerManager | undefined;

function durationOf(text: unknown): number | undefined {
  const match = typeof text === 'string' ? /^(?:(\d{1,4})h)?(?:(\d{1,6})m)?(?:(\d{1,8})s)?$/.exec(text) : null;
  if (!text || !match) return undefined;
  const [, hours, minutes, seconds] = match.map((part) => Number(part ?? 0));
  return ((hours! * 60 + minutes!) * 60 + seconds!) * SECOND;
}
