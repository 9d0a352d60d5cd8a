import { isDeepStrictEqual } from 'node:util';
import { load } from 'js-yaml';
import type { CloudProfile, MachineType } from '../../operator/api/cloudprofile.ts';
import type { Price, PriceList } from './price-list.ts';

export interface Renewal {
  text: string;
  /** How many prices differ from before, new ones included. */
  changed: number;
  /** What stays as it was, or could not be had; a line each. */
  remarks: string[];
}

type Prices = Map<string, Price & { hourly: string }>;

/**
 * Pure: the text of a profile with the prices of a list and the list as their source; everything else, comments too, as it
 * stands. A price that the list does not have stays, and is named. Throws one line when the list is not fit to be used.
 */
export function renew(text: string, list: PriceList): Renewal {
  const profile = load(text) as CloudProfile;
  checkWhole(profile, list);
  const remarks = [...list.remarks];
  let result = text;
  let changed = 0;
  let kept = 0;
  let spotKept = 0;
  const hasSpot = [...list.prices.values()].some((types) => [...types.values()].some(({ spot }) => spot !== undefined));
  for (const type of profile.spec.machineTypes) {
    const before = pricesOf(type);
    const after: Prices = new Map();
    for (const { name: region } of profile.spec.regions) {
      const old = before.get(region);
      const now = list.prices.get(region)?.get(type.name);
      if (now?.hourly === undefined && old)
        remarks.push(`${type.name} in ${region}: the list has none, ${old.hourly} stays`);
      else if (now?.hourly !== undefined && old?.spot !== undefined && !hasSpot) spotKept++;
      else if (now?.hourly !== undefined && old?.spot !== undefined && now.spot === undefined)
        remarks.push(`${type.name} in ${region}: the list has none of spot machines, ${old.spot} stays`);
      const hourly = now?.hourly ?? old?.hourly;
      const spot = now?.spot ?? old?.spot;
      if (hourly === undefined) continue;
      after.set(region, { hourly, ...(spot !== undefined && { spot }) });
      if (old && (now?.hourly === undefined || (old.spot !== undefined && now.spot === undefined))) kept++;
      if (old?.hourly !== hourly || old.spot !== spot) changed++;
    }
    if (after.size === 0) remarks.push(`${type.name}: the list has no price of it, and there was none`);
    if (isDeepStrictEqual(sorted(before), sorted(after))) continue;
    const replaced = withPrice(result, type, priceText(type, after, list.currency));
    if (replaced === undefined)
      throw new Error(`how ${type.name} is written in the profile cannot be rewritten by a program`);
    result = replaced;
  }
  if (spotKept > 0) remarks.push(`the list has no spot prices: ${spotKept} stay as they are`);
  result = withSource(result, list.source, kept > 0);
  if (!isDeepStrictEqual(unpriced(load(result)), unpriced(load(text)))) {
    throw new Error('rewriting the prices would have changed something else');
  }
  return { text: result, changed, remarks };
}

const sorted = (prices: Prices) => [...prices].sort(([a], [b]) => (a < b ? -1 : 1));

function pricesOf({ name, price }: MachineType): Prices {
  if (!price) return new Map();
  if (price.region === undefined) throw new Error(`the price of ${name} is of no region: it cannot be renewed`);
  const { hourly, spot, region, regions = [] } = price;
  const all = [{ name: region, hourly, spot }, ...regions];
  return new Map(
    all.map((one) => [one.name, { hourly: one.hourly, ...(one.spot !== undefined && { spot: one.spot }) }]),
  );
}

/** A list that lacks much of what there was is more likely half a list than the truth. */
function checkWhole(profile: CloudProfile, { prices, currency }: PriceList): void {
  for (const { price, name } of profile.spec.machineTypes) {
    if (price && price.currency !== currency)
      throw new Error(`the list is in ${currency}, the price of ${name} in ${price.currency}: nothing is converted`);
  }
  for (const { name: region } of profile.spec.regions) {
    const known = profile.spec.machineTypes.filter((type) => pricesOf(type).has(region));
    const there = known.filter((type) => prices.get(region)?.get(type.name)?.hourly !== undefined);
    if (2 * there.length < known.length)
      throw new Error(
        `the list has ${there.length} of ${known.length} machine types in ${region}: it is taken for half a list`,
      );
  }
}

function priceText({ price }: MachineType, prices: Prices, currency: string): string {
  const figures = ({ hourly, spot }: Price) => `hourly: '${hourly}'${spot === undefined ? '' : `, spot: '${spot}'`}`;
  const first = price?.region !== undefined && prices.has(price.region) ? price.region : [...prices.keys()][0]!;
  const others = [...prices].filter(([region]) => region !== first);
  const regions = others.map(([name, one]) => `{name: ${name}, ${figures(one)}}`).join(', ');
  const more = others.length === 0 ? '' : `,\n        regions: [${regions}]`;
  return `price: {${figures(prices.get(first)!)}, currency: ${currency}, region: ${first}${more}}`;
}

/** The text with another price of the type. Undefined: its entry is not a line `- {name: ..., ...}` without comments. */
function withPrice(text: string, { name, price }: MachineType, next: string): string | undefined {
  const start = text.indexOf(`- {name: ${name}, `);
  if (start === -1) return undefined;
  const end = endOfBraces(text, start + 2);
  const entry = text.slice(start, end);
  if (end === -1 || entry.includes('#')) return undefined;
  if (!price) return `${text.slice(0, end - 1)}, ${next}${text.slice(end - 1)}`;
  const at = entry.indexOf('price: {');
  const close = at === -1 ? -1 : endOfBraces(entry, at + 'price: '.length);
  if (close === -1) return undefined;
  return text.slice(0, start) + entry.slice(0, at) + next + entry.slice(close) + text.slice(end);
}

/** Index after the brace that closes the one at `from`; -1 when there is none. */
function endOfBraces(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at++) {
    if (text[at] === '{') depth++;
    else if (text[at] === '}' && --depth === 0) return at + 1;
  }
  return -1;
}

const BULLET = '# - Prices';
const EARLIER = '# - Prices that the list above does not have: ';
const MORE = '#   ';
const WIDTH = 120;

/** Names the list among the sources; what was named before stays for what the list does not have. */
function withSource(text: string, source: string, withEarlier: boolean): string {
  const lines = text.split('\n');
  const at = lines.findIndex((line) => line.startsWith(BULLET));
  if (at === -1) return `${wrapped(`${BULLET}: ${source}`)}\n${text}`;
  const earlier: string[] = [];
  let end = at;
  while (lines[end]?.startsWith(BULLET)) {
    let bullet = lines[end++]!;
    while (lines[end]?.startsWith(MORE)) bullet += ` ${lines[end++]!.slice(MORE.length)}`;
    earlier.push(bullet.startsWith(EARLIER) ? bullet : EARLIER + bullet.slice(BULLET.length).replace(/^:? /, ''));
  }
  const named = [`${BULLET}: ${source}`, ...(withEarlier ? earlier : [])];
  return [...lines.slice(0, at), ...named.map(wrapped), ...lines.slice(end)].join('\n');
}

/** A comment in lines of the house's width. */
function wrapped(comment: string): string {
  const lines: string[] = [];
  let line = '';
  for (const word of comment.split(' ')) {
    if (line !== '' && `${line} ${word}`.length > WIDTH) {
      lines.push(line);
      line = `#   ${word}`;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].join('\n');
}

const unpriced = (profile: unknown): unknown =>
  JSON.parse(JSON.stringify(profile, (key, value) => (key === 'price' ? undefined : value)));
