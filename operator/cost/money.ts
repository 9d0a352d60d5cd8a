import { scaledQuantity } from '../api/quantity.ts';

/** Money in millionths of a currency, as integers: floating-point sums do not add up. */
export type Micros = bigint;

const MICROS = 1_000_000n;

/** Micros of a decimal ("0.096") or a quantity ("60", "4k"), rounded up. Throws RangeError otherwise. */
export const parseMoney = (amount: string | number): Micros => scaledQuantity(amount, MICROS);

/** The shortest decimal: 1920000n is "1.92". */
export function formatMoney(micros: Micros): string {
  const digits = micros.toString().padStart(7, '0');
  const fraction = digits.slice(-6).replace(/0+$/, '');
  return fraction === '' ? digits.slice(0, -6) : `${digits.slice(0, -6)}.${fraction}`;
}

/** For messages: rounded to this number of decimals (0 to 6), all of them written. */
export function roundMoney(micros: Micros, decimals: number): string {
  const step = 10n ** BigInt(6 - decimals);
  const rounded = ((micros + step / 2n) / step) * step;
  const [whole, fraction = ''] = formatMoney(rounded).split('.');
  return decimals === 0 ? whole! : `${whole}.${fraction.padEnd(decimals, '0')}`;
}
