type Labels = Readonly<Record<string, string>>;

const LINE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/** Sum of the series of a counter, in Prometheus' text format, that `where` wants. */
export function sumOf(text: string, name: string, where: (labels: Labels) => boolean = () => true): number {
  let sum = 0;
  for (const line of text.split('\n')) {
    if (!line.startsWith(name)) continue;
    const [, found, labelText = '', value] = LINE.exec(line) ?? [];
    if (found !== name) continue;
    const labels = Object.fromEntries([...labelText.matchAll(LABEL)].map(([, key, content]) => [key, content]));
    if (where(labels as Labels)) sum += Number(value);
  }
  return sum;
}

const READS = new Set(['GET', 'LIST', 'WATCH', 'WATCHLIST', 'CONNECT', 'PROXY', 'HEAD', 'OPTIONS']);

/** Whether a series of kube-apiserver's or the operator's request counter counts writes. A dry run writes nothing. */
export const isWrite = (labels: Labels): boolean =>
  !READS.has((labels.verb ?? labels.method ?? '').toUpperCase()) && !labels.dry_run;
