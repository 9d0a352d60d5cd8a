/** An age as kubectl writes it: `12s`, `4m30s`, `3h`, `5d3h`, `2y10d`. Never negative. */
export function formatAge(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return two(minutes, 'm', seconds % 60, 's');
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 8) return two(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return `${hours}h`;
  const days = Math.floor(hours / 24);
  if (days < 8) return two(days, 'd', hours % 24, 'h');
  if (days < 730) return `${days}d`;
  return two(Math.floor(days / 365), 'y', days % 365, 'd');
}

/** The age of a timestamp at `now` (milliseconds since the epoch), or `<unknown>`. */
export function ageOf(timestamp: string | undefined, now: number): string {
  const then = timestamp === undefined ? Number.NaN : Date.parse(timestamp);
  return Number.isNaN(then) ? '<unknown>' : formatAge(now - then);
}

/** A stopwatch reading: `0:07`, `12:30`, `1:02:03`. */
export function formatElapsed(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const pad = (value: number) => String(value).padStart(2, '0');
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor((seconds % 3600) / 60);
  return hours > 0 ? `${hours}:${pad(minutes)}:${pad(seconds % 60)}` : `${minutes}:${pad(seconds % 60)}`;
}

/** A rough time left, as people say it: `40 s`, `3 min`, `1 h 10 min`. */
export function formatRemaining(seconds: number): string {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function two(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${largeUnit}` : `${large}${largeUnit}${small}${smallUnit}`;
}
