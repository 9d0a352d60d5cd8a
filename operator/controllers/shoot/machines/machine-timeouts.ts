import type { Worker } from '../../../api/shoot-worker.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
/** Gardener waits 2 hours; here whole clusters come and go for bursts, so a drain that is held up is cut off sooner. */
const DRAIN_TIMEOUT_MS = 10 * MINUTE;

interface MachineControllerManager {
  readonly machineDrainTimeout?: string;
  readonly machineHealthTimeout?: string;
}

/** Gardener's machineControllerManager.machineDrainTimeout of the pool, in milliseconds. */
export const drainTimeoutOf = (worker: Worker | undefined): number =>
  durationOf(settingsOf(worker)?.machineDrainTimeout) ?? DRAIN_TIMEOUT_MS;

/** Gardener's machineControllerManager.machineHealthTimeout of the pool, in milliseconds: how long a node may be unwell. Absent: undefined. */
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
