import { configurationProblem } from '../../api/errors.ts';
import type { TraceLine, WorkSize } from './trace-line.ts';
import { traceProblem } from './trace-text.ts';

/** How demand that was measured elsewhere becomes work. */
export interface CurveOptions {
  /** Of a curve: how much of the demand one replica serves. Of arrivals: of how many one is played. Absent: 1. */
  readonly per?: number | undefined;
  /** What a replica of a curve asks for. */
  readonly size?: WorkSize | undefined;
}

/** Demand at a moment, in any unit: the one number is served by replicas. */
const CURVE = ['seconds', 'demand'];
/** Machines that were asked for, with size and life. */
const ARRIVALS = ['arrival_seconds', 'cpu', 'memory_mib', 'duration_seconds', 'count'];
const NAME = 'demand';

/** A row that asks for nothing new is a line of event `time`. */
type LineOf = (where: string, row: readonly string[]) => TraceLine;

/**
 * Reads lines of a file with this header, where it is a curve of demand (`seconds,demand`) or arrivals
 * (`arrival_seconds,cpu,memory_mib,duration_seconds,count`); undefined: it is neither. Throws a configuration problem.
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
    // 0.1 + 0.2 is a little more than 0.3, and no reason for another replica.
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
    // What is left of a division counts with the next: so that the sum is right.
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
