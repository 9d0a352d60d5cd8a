import { formatElapsed, formatRemaining } from './age.ts';
import { displayWidth, type Paint, plain, type Tone, truncate } from './text.ts';

export interface ProgressView {
  /** Subject of the line: `WorkerCluster demo`, `kube-apiserver`. */
  label: string;
  /** 0 to 1; absent if unknown. */
  fraction?: number;
  message: string;
  elapsedMs: number;
  remainingSeconds?: number;
  /** `left`: the person interrupted the command. */
  state?: 'busy' | 'done' | 'failed' | 'left';
}

const BAR = 16;
const SPINNER = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏';
const SPIN_MS = 120;

/** One progress line, cut to the terminal: mark, label, bar, message, time. */
export function progressLine(progress: ProgressView, width: number, paint: Paint = plain): string {
  const [mark, tone] = markOf(progress);
  const bar = progress.fraction === undefined || progress.state === 'done' ? '' : renderBar(progress.fraction);
  const left = progress.remainingSeconds;
  const time =
    left === undefined || progress.state === 'done'
      ? formatElapsed(progress.elapsedMs)
      : `${formatElapsed(progress.elapsedMs)}, about ${formatRemaining(left)} left`;
  const fixed = [mark, progress.label, ...(bar === '' ? [] : [bar])];
  const room = width - displayWidth(fixed.join(' ')) - displayWidth(time) - 4;
  if (room < 8) return truncate([mark, progress.label, time].join(' '), width);
  const message = truncate(progress.message, room);
  return [paint(tone, mark), paint('strong', progress.label), ...fixed.slice(2), message, paint('dim', `(${time})`)]
    .filter((part) => part !== '')
    .join(' ');
}

/** `━━━━━━──────────  38 %` */
function renderBar(fraction: number): string {
  const bounded = Math.min(1, Math.max(0, fraction));
  const full = Math.round(bounded * BAR);
  return `${'━'.repeat(full)}${'─'.repeat(BAR - full)} ${String(Math.floor(bounded * 100)).padStart(3)} %`;
}

function markOf(progress: ProgressView): [string, Tone] {
  if (progress.state === 'done') return ['✔', 'good'];
  if (progress.state === 'failed') return ['✘', 'bad'];
  if (progress.state === 'left') return ['–', 'dim'];
  return [SPINNER[Math.floor(progress.elapsedMs / SPIN_MS) % SPINNER.length]!, 'busy'];
}
