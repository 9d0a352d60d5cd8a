import type { ProgressEvent } from '../toolchain/progress.ts';

/** What is going on, for people: the latest of each stage (and tool) counts. */
export interface GardenProgress {
  stage: string;
  message: string;
  tool?: string;
  /** 0 to 1. */
  fraction?: number;
  remainingSeconds?: number;
}

/** What people are told of a tool; undefined: it was there, which is no news. Pure. */
export function toolProgress(event: ProgressEvent): GardenProgress | undefined {
  const { tool, phase, source, fraction, remainingSeconds, detail } = event;
  if (phase === 'ready' && (source === 'cache' || source === 'path')) return undefined;
  const message = detail ?? `${phase} (${source})`;
  return {
    stage: 'tools',
    tool,
    message:
      phase === 'ready' ? `ready, from ${source}` : phase === 'skipped' ? `not from ${source}: ${message}` : message,
    ...(phase === 'ready' ? { fraction: 1 } : fraction !== undefined && { fraction }),
    ...(remainingSeconds !== undefined && { remainingSeconds }),
  };
}
