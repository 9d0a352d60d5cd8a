import type { Micros } from '../cost/money.ts';

/** Money of one currency, in millionths. */
export interface Cost {
  currency: string;
  amount: Micros;
}
