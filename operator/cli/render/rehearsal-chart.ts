import type { Standing } from '../../rehearsal/standings.ts';

/** Data of a rehearsal's chart. */
interface ChartInputs {
  readonly title: string;
  /** Virtual time, milliseconds. */
  readonly start: number;
  readonly end: number;
  readonly dated: boolean;
  readonly currency: string;
  readonly standings: readonly Standing[];
}

const WIDTH = 960;
const LEFT = 64;
const RIGHT = 24;
/** Most points of a line: one per pixel. */
const COLUMNS = WIDTH - LEFT - RIGHT;
const CPU = { top: 72, height: 220 };
const COST = { top: 352, height: 110 };
const HEIGHT = 520;
const HOUR_MS = 3_600_000;
const STEPS_MS = [1 / 60, 1 / 12, 1 / 4, 1 / 2, 1, 2, 3, 6, 12, 24, 48, 168, 336, 720].map((hours) => hours * HOUR_MS);

/** No CSS variables: image viewers do not support them and draw everything black. */
const STYLE = `
  :root { color-scheme: light dark; }
  text { font: 12px system-ui, sans-serif; fill: #59636e; } .title { font-size: 15px; font-weight: 600; fill: #1f2328; } .axis { fill: #1f2328; }
  .grid { stroke: #d1d9e0; stroke-width: 1; } .ground { fill: #ffffff; }
  .demand { fill: #0969da; fill-opacity: .25; stroke: #0969da; } .capacity { fill: none; stroke: #9a6700; stroke-width: 1.5; }
  .cost { fill: #1a7f37; fill-opacity: .2; stroke: #1a7f37; }
  @media (prefers-color-scheme: dark) {
    text { fill: #9198a1; } .title, .axis { fill: #f0f6fc; } .grid { stroke: #3d444d; } .ground { fill: #0d1117; }
    .demand { fill: #4493f8; stroke: #4493f8; } .capacity { stroke: #d29922; } .cost { fill: #3fb950; stroke: #3fb950; }
  }`;

/** Demand, capacity and cost over time as SVG, for light and dark pages. Deterministic. */
export function rehearsalChart(inputs: ChartInputs): string {
  const { title, standings, currency } = inputs;
  const demand = sampled(inputs, standings, ({ demand: cpu }) => cpu / 1000);
  const capacity = sampled(inputs, standings, ({ capacity: cpu }) => cpu / 1000);
  const cost = sampled(inputs, standings, ({ boughtHourly }) => boughtHourly / 1e6);
  const ofCpu = scaleOf(CPU, Math.max(...demand, ...capacity));
  const ofCost = scaleOf(COST, Math.max(...cost));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escaped(title)}">`,
    `<style>${STYLE}\n</style>`,
    `<rect class="ground" width="${WIDTH}" height="${HEIGHT}"/>`,
    `<text class="title" x="${LEFT}" y="24">${escaped(title)}</text>`,
    legend(LEFT, 48, 'demand', 'CPU asked for'),
    legend(LEFT + 150, 48, 'capacity', 'CPU of Ready nodes'),
    ...axis(ofCpu, 'CPU'),
    `<path class="demand" d="${area(demand, ofCpu)}"/>`,
    `<path class="capacity" d="${line(capacity, ofCpu)}"/>`,
    legend(LEFT, COST.top - 20, 'cost', `what was bought costs, ${currency} an hour`),
    ...axis(ofCost, `${currency}/h`),
    `<path class="cost" d="${area(cost, ofCost)}"/>`,
    ...timeAxis(inputs),
    '</svg>',
    '',
  ].join('\n');
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
const number = (value: number): string => String(Math.round(value * 10) / 10);

/** Maximum of each column, so that no peak is lost between two columns. */
function sampled(
  { start, end }: ChartInputs,
  standings: readonly Standing[],
  of: (standing: Standing) => number,
): number[] {
  const columns = new Array<number>(COLUMNS).fill(0);
  const columnOf = (at: number) => Math.floor(((at - start) / Math.max(1, end - start)) * COLUMNS);
  for (const [index, standing] of standings.entries()) {
    const first = Math.max(0, columnOf(standing.at));
    const last = Math.min(COLUMNS - 1, columnOf(standings[index + 1]?.at ?? end));
    const value = of(standing);
    for (let column = first; column <= last; column++) columns[column] = Math.max(columns[column]!, value);
  }
  return columns;
}

interface Scale {
  readonly top: number;
  readonly height: number;
  readonly most: number;
  readonly step: number;
}

/** Scale up to a round number, with four or five lines. */
function scaleOf(place: { top: number; height: number }, most: number): Scale {
  const rough = Math.max(most, 1e-6) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((times) => times * power).find((one) => one >= rough)!;
  return { ...place, step, most: step * Math.max(1, Math.ceil(most / step - 1e-9)) };
}

const yOf = ({ top, height, most }: Scale, value: number): number => top + height - (value / most) * height;

function axis(scale: Scale, unit: string): string[] {
  const lines = Math.round(scale.most / scale.step);
  const rows = Array.from({ length: lines + 1 }, (_, index) => {
    const value = Number((index * scale.step).toPrecision(6));
    const y = number(yOf(scale, value));
    return `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y}" y2="${y}"/><text x="${LEFT - 8}" y="${y}" dy="4" text-anchor="end">${value}</text>`;
  });
  const middle = number(scale.top + scale.height / 2);
  return [
    ...rows,
    `<text class="axis" transform="translate(16 ${middle}) rotate(-90)" text-anchor="middle">${escaped(unit)}</text>`,
  ];
}

/** A step line without redundant points. */
function line(values: readonly number[], scale: Scale): string {
  const parts: string[] = [];
  for (const [index, value] of values.entries()) {
    if (index > 0 && values[index - 1] === value) continue;
    const y = number(yOf(scale, value));
    parts.push(index === 0 ? `M${LEFT} ${y}` : `H${LEFT + index}V${y}`);
  }
  return `${parts.join('')}H${LEFT + values.length}`;
}

const area = (values: readonly number[], scale: Scale): string =>
  `${line(values, scale)}V${number(yOf(scale, 0))}H${LEFT}Z`;

const legend = (x: number, y: number, kind: string, text: string): string =>
  `<rect class="${kind}" x="${x}" y="${y - 10}" width="14" height="10"/><text x="${x + 20}" y="${y}">${escaped(text)}</text>`;

function timeAxis({ start, end, dated }: ChartInputs): string[] {
  const length = Math.max(1, end - start);
  const step = STEPS_MS.find((one) => length / one <= 12) ?? length / 8;
  const inDays = step >= 24 * HOUR_MS;
  const labels: string[] = [];
  for (let at = 0; at <= length; at += step) {
    const x = number(LEFT + (at / length) * COLUMNS);
    labels.push(
      `<line class="grid" x1="${x}" x2="${x}" y1="${CPU.top}" y2="${COST.top + COST.height}" stroke-dasharray="2 4"/>`,
      `<text x="${x}" y="${COST.top + COST.height + 20}" text-anchor="middle">${timeOf(start, at, dated, inDays)}</text>`,
    );
  }
  const unit = dated ? 'time (UTC)' : inDays ? 'days since the start' : 'hours since the start';
  const y = COST.top + COST.height + 44;
  return [...labels, `<text class="axis" x="${LEFT + COLUMNS / 2}" y="${y}" text-anchor="middle">${unit}</text>`];
}

function timeOf(start: number, at: number, dated: boolean, inDays: boolean): string {
  if (dated) return new Date(start + at).toISOString().slice(inDays ? 5 : 11, inDays ? 10 : 16);
  return String(Math.round((at / HOUR_MS / (inDays ? 24 : 1)) * 100) / 100);
}
