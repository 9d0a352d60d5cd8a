import type { Asked } from './bound/demand-curve.ts';

/** How things stand from a moment on. CPU in millicores, money in millionths an hour. */
export interface Standing {
  readonly at: number;
  /** What all work asks for that runs or waits, and what runs of it. */
  readonly demand: number;
  readonly running: number;
  /** What Ready nodes offer. */
  readonly capacity: number;
  /** Of clusters that were bought: what machines offer that are paid for, and what runs there. */
  readonly boughtPaid: number;
  readonly boughtUsed: number;
  readonly boughtHourly: number;
  /** What of that is for control planes, and for what else, by what stood there. */
  readonly boughtFees: number;
  /** Machines that are not Ready, or not any more. */
  readonly boughtStarting: number;
  /** Nodes of clusters without work. */
  readonly boughtIdle: number;
  /** Nodes without work, of clusters that have some. */
  readonly boughtSpare: number;
  /** Of nodes with work what no work has. */
  readonly boughtRoom: number;
  /** What of it all is for clusters that wait, their control planes included, and not in the four above. */
  readonly boughtWarm: number;
  readonly boughtAsleep: number;
  /** Machines of clusters of others that were woken: in none of the others. */
  readonly boughtWoken: number;
  /** What of clusters that wait is for their control planes. */
  readonly boughtWaitingFees: number;
  readonly boughtClusters: number;
  readonly boughtNodes: number;
}

type Amount = Exclude<keyof Standing, 'at'>;

/** How things stood, from one change to the next. */
export class Standings {
  readonly all: Standing[] = [];
  /** What ran of the hub's work. */
  readonly ran: Asked[] = [];

  addRan(ran: Asked): void {
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
