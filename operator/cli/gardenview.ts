import type { GardenProgress } from '../garden/state/garden-progress.ts';
import { InterruptedError, oneLine } from './errors.ts';
import { type ProgressView, progressLine } from './render/progress.ts';
import { type Paint, plain } from './render/text.ts';
import type { Terminal } from './terminal.ts';
import { logLine } from './waiting.ts';

interface Stage {
  key: string;
  event: GardenProgress;
  startedMs: number;
  endedMs?: number;
  /** Time of the last log line about this tool or stage. */
  saidMs: number;
}

/** Interval of log lines about a build, which takes minutes. */
const SAY_AGAIN_MS = 20_000;

/**
 * Stages of starting a garden as lines, one per stage and tool. A stage is done when a later one has begun or its fraction is 1.
 * Tools are built in parallel with stages, so a tool is done by its fraction only.
 */
export class GardenStages {
  readonly #stages: Stage[] = [];

  /** Records an event; `nowMs` is the time since the start. Returns a log line if there is news. */
  record(event: GardenProgress, nowMs: number): string | undefined {
    const key = event.tool === undefined ? event.stage : `${event.stage}/${event.tool}`;
    let stage = this.#stages.find((candidate) => candidate.key === key);
    const before = stage?.event;
    if (stage === undefined) {
      if (event.tool === undefined) this.#closeStages(nowMs);
      stage = { key, event, startedMs: nowMs, saidMs: nowMs };
      this.#stages.push(stage);
    }
    stage.event = event;
    if (event.fraction !== undefined && event.fraction >= 1) stage.endedMs ??= nowMs;
    else delete stage.endedMs;
    const news = before === undefined || before.message !== event.message;
    const far = event.fraction !== undefined && event.fraction < 1 && nowMs - stage.saidMs >= SAY_AGAIN_MS;
    if (!news && !far) return undefined;
    stage.saidMs = nowMs;
    return logText(event);
  }

  finish(nowMs: number): void {
    for (const stage of this.#stages) stage.endedMs ??= nowMs;
  }

  /** @param unfinished mark of stages in progress */
  lines(
    nowMs: number,
    width: number,
    paint: Paint = plain,
    unfinished: NonNullable<ProgressView['state']> = 'busy',
  ): string[] {
    return this.#stages.map(({ event, startedMs, endedMs }) => {
      const state = endedMs !== undefined ? 'done' : unfinished;
      return progressLine(
        {
          label: event.tool ?? event.stage,
          message: oneLine(event.message),
          elapsedMs: (endedMs ?? nowMs) - startedMs,
          state,
          ...(event.fraction === undefined ? {} : { fraction: event.fraction }),
          ...(event.remainingSeconds === undefined ? {} : { remainingSeconds: event.remainingSeconds }),
        },
        width,
        paint,
      );
    });
  }

  #closeStages(nowMs: number): void {
    for (const stage of this.#stages) if (stage.event.tool === undefined) stage.endedMs ??= nowMs;
  }
}

function logText({ stage, tool, message, fraction, remainingSeconds }: GardenProgress): string {
  const far = fraction !== undefined && fraction > 0 && fraction < 1 ? `, ${Math.floor(fraction * 100)} %` : '';
  const left = far !== '' && remainingSeconds !== undefined ? `, about ${Math.ceil(remainingSeconds)} s left` : '';
  return `${tool === undefined ? stage : `${stage} ${tool}`}: ${oneLine(message)}${far}${left}`;
}

const FRAME_MS = 120;

/** Runs work that reports progress, and shows it: redrawn on a terminal, as lines elsewhere. */
export async function showProgress<T>(
  terminal: Terminal,
  work: (onProgress: (event: GardenProgress) => void) => Promise<T>,
): Promise<T> {
  const region = terminal.live();
  const stages = new GardenStages();
  const started = Date.now();
  const elapsed = () => Date.now() - started;
  const draw = (unfinished?: ProgressView['state']) => {
    if (region.animated) region.update(stages.lines(elapsed(), region.width, terminal.notePaint, unfinished));
  };
  const timer = region.animated ? setInterval(() => draw(), FRAME_MS) : undefined;
  try {
    const result = await work((event) => {
      const line = stages.record(event, elapsed());
      if (!region.animated && line !== undefined) logLine(region, line, elapsed());
    });
    stages.finish(elapsed());
    draw();
    return result;
  } catch (error) {
    draw(error instanceof InterruptedError ? 'left' : 'failed');
    throw error;
  } finally {
    clearInterval(timer);
    region.finish();
  }
}
