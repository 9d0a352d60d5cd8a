import { createHash } from 'node:crypto';

/** Hexadecimal digits (at most 64) that look random and are always the same for the same words. */
export const digits = (count: number, ...words: string[]): string =>
  createHash('sha256').update(words.join('\0')).digest('hex').slice(0, count);

/** As `digits`, as a decimal number without a leading zero. */
export const decimals = (count: number, ...words: string[]): string =>
  `1${BigInt(`0x${digits(32, ...words)}`).toString()}`.slice(0, count);
