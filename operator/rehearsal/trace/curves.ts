import { configurationProblem } from '../../api/errors.ts';
import type { TraceLine, WorkSize } from './trace-line.ts';
import { traceProblem } from './trace-text.ts';

/** Conversion of external demand data into workloads. */
export interface CurveOptions {
  /** For a curve: demand served by one replica. For arrivals: one of this many is run. Absent: 1. */
  readonly per?: number | undefined;
  /** Size of a curve's replica. */
  readonly size?: WorkSize | undefined;
}

/** Columns of a demand curve in any unit, served by replicas. */
const CURVE = ['seconds', 'demand'];
/** Columns of machine arrivals with size and life. */
const ARRIVALS = ['arrival_seconds', 'cpu', 'memory_mib', 'duration_seconds', 'count'];
const NAME = 'demand';

/** A row without a change becomes a line of event `time`. */
type LineOf = (where: string, row: readonly string[]) => TraceLine;

/**
 * Parser for the rows of a file with this header: a demand curve (`seconds,demand`) or arrivals
 * (`arrival_seconds,cpu,memory_mib,duration_seconds,count`); undefined: neither. Throws a configuration problem.
 */
export function curveOf(header: readonly string[], where: string, { per = 1, size }: CurveOptions): LineOf | undefined {
  const is = (columns: readonly string[]) => header.join() === columns.join();
  if (is(CURVE)) {
    if (!size)
      throw configurationProblem(
        `${where}: a curve does not say what a replica asks for`,
        'Say it with --replica, for example --replica cpu=1,memory=2Gi.',
      );
    return replicasOf(per, size);
  }
  return is(ARRIVALS) ? jobsOf(per) : undefined;
}

function replicasOf(per: number, size: WorkSize): LineOf {
  let before: number | undefined;
  return (where, row) => {
    const [seconds, demand] = numbers(where, row, CURVE);
    // 0.1 + 0.2 slightly exceeds 0.3, which must not add a replica.
    const replicas = Math.ceil(demand! / per - 1e-9);
    if (replicas === before) return timeOf(where, seconds!);
    before = replicas;
    return lineOf(where, seconds!, { name: NAME, replicas, size });
  };
}

function jobsOf(per: number): LineOf {
  let left = 0;
  return (where, row) => {
    const [seconds, cpu, memory, life, count] = numbers(where, row, ARRIVALS);
    // The remainder of a division carries over to the next row, so that the sum is exact.
    left += count!;
    const jobs = Math.floor(left / per);
    left -= jobs * per;
    if (jobs === 0 || life! <= 0) return timeOf(where, seconds!);
    const size = { cpu: String(cpu), memory: `${memory}Mi` };
    return lineOf(where, seconds!, { name: NAME, jobs, lifeMs: life! * 1000, size });
  };
}

const timeOf = (where: string, seconds: number): TraceLine => ({
  where,
  at: Math.round(seconds * 1000),
  dated: false,
  cluster: '',
  event: 'time',
  pools: [],
});

const lineOf = (where: string, seconds: number, work: NonNullable<TraceLine['work']>): TraceLine => ({
  ...timeOf(where, seconds),
  event: 'work',
  work,
});

function numbers(where: string, row: readonly string[], columns: readonly string[]): number[] {
  const found = row.map(Number);
  if (row.length !== columns.length || found.some((value) => !Number.isFinite(value) || value < 0) || row.includes(''))
    throw traceProblem(where, `the line is not ${columns.join(',')}, all numbers from 0`);
  return found;
}
