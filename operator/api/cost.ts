import { z } from 'zod';
import { count, list, text } from './schema.ts';

/** A decimal number as in prices: no sign, no exponent. */
export const DECIMAL = /^[0-9]+(\.[0-9]+)?$/;

const money = (description: string) => text(40, description, DECIMAL);

export const clusterSizeSchema = z
  .object({
    region: text(63, 'Region, as prices differ by it.').optional(),
    mode: z
      .enum(['Hosted', 'Managed', 'SelfManaged'])
      .describe('Mode of the cluster: where its control plane runs.')
      .optional(),
    pools: list(
      z
        .object({
          name: text(63, 'Name of the pool.'),
          machineType: text(63, 'Machine type.'),
          count: count(0, undefined, 'Number of machines.'),
          spot: z.boolean().describe('Whether the machines are spot machines.').optional(),
        })
        .describe('Equal machines.'),
      128,
      'Machines by pool.',
    ),
  })
  .describe('Size of the cluster.');
/** Size of a cluster: machines by pool, and who runs the control plane. */
export type ClusterSize = z.output<typeof clusterSizeSchema>;

export const costSchema = z
  .object({
    hourly: money(
      'What the machines that are there, and a managed control plane, cost in an hour at the prices of the CloudProfile. Absent: none of them has a price there. Disks, traffic and load balancers are not in it. Of a simulated cluster: what it would cost.',
    ).optional(),
    accrued: money(
      'What it has cost until asOf. Until now: accrued + hourly x (hours since asOf); nothing is written while hourly stays the same.',
    ).optional(),
    remainder: count(
      0,
      3599,
      'What accrued leaves out, in 1/3600 of a millionth of the currency, so that adding up loses nothing.',
    ).optional(),
    currency: text(3, 'ISO 4217 code.').optional(),
    asOf: z.string().meta({ format: 'date-time', description: 'Time since which hourly applies.' }).optional(),
    unpriced: list(
      text(512, 'A part without a price, and where the price is missing.'),
      64,
      'Parts without a price, which hourly leaves out.',
    ).optional(),
  })
  .describe('Cost of the cluster.');
/** `status.cost`: decimals as text, in one currency. */
export type ClusterCost = z.output<typeof costSchema>;
