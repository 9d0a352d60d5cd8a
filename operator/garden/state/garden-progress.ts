import type { ProgressEvent } from '../toolchain/progress.ts';

/** Progress for messages: the latest event of each stage (and tool) applies. */
export interface GardenProgress {
  stage: string;
  message: string;
  tool?: string;
  /** 0 to 1. */
  fraction?: number;
  remainingSeconds?: number;
}

/** Progress message of a tool; undefined: it was already present. Pure. */
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
