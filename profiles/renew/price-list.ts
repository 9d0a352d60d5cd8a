import { fetch, type Response } from 'undici';
import type { MachineType } from '../../operator/api/cloudprofile.ts';
import { toClouds } from '../../providers/cloud-http.ts';

/** Prices of one machine type in one region, decimal numbers in the list's currency per hour. */
export interface Price {
  hourly?: string;
  /** Of a machine that the cloud takes away at short notice, where the list has it. */
  spot?: string;
}

/** What a cloud's price list says of the machine types of a profile. */
export interface PriceList {
  /** What was read, and of what date: becomes the comment in the profile. */
  source: string;
  currency: string;
  /** By region, then machine type. A region or a type that the list does not have is absent. */
  prices: ReadonlyMap<string, ReadonlyMap<string, Price>>;
  /** What of the list could not be used, a line each. */
  remarks: string[];
}

/** What of a profile a price list is asked for. */
export interface Wanted {
  regions: readonly string[];
  machineTypes: readonly Pick<MachineType, 'name' | 'cpu' | 'memory'>[];
}

export interface ReadOptions {
  /** Where the list is, in place of the cloud's own address. */
  base?: string;
  /** RFC 3339 date of today. */
  today: string;
  signal: AbortSignal;
}

/** Reads a cloud's price list. Throws one line when it cannot be had whole. */
export type ReadPrices = (wanted: Wanted, options: ReadOptions) => Promise<PriceList>;

/** Until a list begins; how long it then takes depends on its size. */
const PATIENCE_MS = 60_000;

/** A response with a body. Throws one line that names the address without its query, which may have a key in it. */
export async function request(url: URL, signal: AbortSignal): Promise<Response & { body: ReadableStream<Uint8Array> }> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new Error(`no answer within ${PATIENCE_MS / 1000} s`)), PATIENCE_MS);
  let response: Response;
  try {
    response = await fetch(url, {
      signal: AbortSignal.any([signal, late.signal]),
      redirect: 'error',
      dispatcher: toClouds,
    });
  } catch (error) {
    throw unread(url, error);
  } finally {
    clearTimeout(timer);
  }
  if (response.ok && response.body) return response as Response & { body: ReadableStream<Uint8Array> };
  await response.body?.cancel();
  throw new Error(`${shown(url)} answers ${response.status}`);
}

/** A JSON document. Throws one line. */
export async function requestJSON(url: URL, signal: AbortSignal): Promise<unknown> {
  const response = await request(url, signal);
  try {
    return await response.json();
  } catch (error) {
    throw unread(url, error);
  }
}

/** The error of a list that was not read to its end. */
export function unread(url: URL, error: unknown): Error {
  const { message, cause } = error as Error & { cause?: Error & { code?: string } };
  const why = cause?.code ?? cause?.message ?? message;
  return new Error(`${shown(url)} cannot be read to its end: ${why.replaceAll(/\s+/g, ' ')}`);
}

const shown = ({ origin, pathname }: URL): string => `${origin}${pathname}`;

/** A price as profiles have it: at most six places (amounts of money are whole millionths), without zeros at the end. Undefined: it is none. */
export function decimal(value: string | number): string | undefined {
  const number = typeof value === 'number' ? value : value.trim() === '' ? Number.NaN : Number(value);
  if (!Number.isFinite(number) || number <= 0) return undefined;
  const text = number.toFixed(6).replace(/\.?0+$/, '');
  return text === '0' ? undefined : text;
}

/** Collects prices of a list; two different ones of one type make neither known. */
export class Collected {
  readonly #prices = new Map<string, Map<string, Price>>();
  readonly #ambiguous = new Set<string>();
  readonly #wanted: Wanted;

  constructor(wanted: Wanted) {
    this.#wanted = wanted;
  }

  add(region: string, type: string, kind: keyof Price, value: string | number): void {
    const price = decimal(value);
    if (price === undefined || !this.#wanted.regions.includes(region)) return;
    if (!this.#wanted.machineTypes.some(({ name }) => name === type)) return;
    const types = this.#prices.get(region) ?? new Map<string, Price>();
    this.#prices.set(region, types);
    const known = types.get(type) ?? {};
    types.set(type, known);
    if (known[kind] !== undefined && known[kind] !== price) this.#ambiguous.add(`${region} ${type} ${kind}`);
    else known[kind] = price;
  }

  /** What there is, and a line for each price that the list has twice. */
  whole(): Pick<PriceList, 'prices' | 'remarks'> {
    const remarks = [...this.#ambiguous].map((which) => {
      const [region, type, kind] = which.split(' ') as [string, string, keyof Price];
      delete this.#prices.get(region)?.get(type)?.[kind];
      return `the list has different prices (${kind}) of ${type} in ${region}: none is taken`;
    });
    return { prices: this.#prices, remarks };
  }
}
