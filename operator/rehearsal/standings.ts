import type { DemandSince } from './bound/demand-curve.ts';

/** State from a time on. CPU in millicores, money in micros per hour. */
export interface Standing {
  readonly at: number;
  /** Requests of all workloads that run or wait, and of those that run. */
  readonly demand: number;
  readonly running: number;
  /** Allocatable of Ready nodes. */
  readonly capacity: number;
  /** In bought clusters: allocatable of billed machines, and requests running there. */
  readonly boughtPaid: number;
  readonly boughtUsed: number;
  readonly boughtHourly: number;
  /** Cost of control planes; the next fields divide the rest by state. */
  readonly boughtFees: number;
  /** Machines that are not yet, or no longer, Ready. */
  readonly boughtStarting: number;
  /** Nodes of clusters without workloads. */
  readonly boughtIdle: number;
  /** Nodes without workloads in clusters that have some. */
  readonly boughtSpare: number;
  /** Unused part of nodes with workloads. */
  readonly boughtRoom: number;
  /** Cost of waiting clusters, control planes included; excluded from the four above. */
  readonly boughtWarm: number;
  readonly boughtAsleep: number;
  /** Machines of woken clusters that were not bought: in none of the others. */
  readonly boughtWoken: number;
  /** Control planes of waiting clusters. */
  readonly boughtWaitingFees: number;
  readonly boughtClusters: number;
  readonly boughtNodes: number;
}

type Amount = Exclude<keyof Standing, 'at'>;

/** States over time, from one change to the next. */
export class Standings {
  readonly all: Standing[] = [];
  /** Amounts of the hub's workloads that ran. */
  readonly ran: DemandSince[] = [];

  addRan(ran: DemandSince): void {
    const last = this.ran.at(-1);
    if (last?.at === ran.at) this.ran.pop();
    this.ran.push(ran);
  }

  add(standing: Standing): void {
    const last = this.all.at(-1);
    if (last && last.at === standing.at) this.all.pop();
    else if (last && isSame(last, standing)) return;
    this.all.push(standing);
  }

  peak(of: Amount): number {
    return this.all.reduce((most, standing) => Math.max(most, standing[of]), 0);
  }

  /** Amount times milliseconds until `end`. */
  sum(of: Amount, end: number): number {
    return this.all.reduce((total, standing, index) => {
      const until = this.all[index + 1]?.at ?? end;
      return total + standing[of] * Math.max(0, until - standing.at);
    }, 0);
  }
}

const isSame = (a: Standing, b: Standing): boolean =>
  (Object.keys(b) as (keyof Standing)[]).every((field) => field === 'at' || a[field] === b[field]);
