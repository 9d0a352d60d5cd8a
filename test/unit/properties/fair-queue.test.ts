import { describe, expect } from 'vitest';
import { FairQueue, nextTicket, type Ticket } from '../../../operator/kube/fair-queue.ts';
import { type Draw, holds } from '../../kit/property.ts';

const GROUPS = ['a', 'b', 'c', 'd'];
const ticket = (choose: Draw, stacks: number): Ticket => {
  const stack = choose.integer(1, stacks);
  // A stack is of one account.
  const group = GROUPS[stack % GROUPS.length]!;
  return { tenant: group, group, exclusive: `stack-${stack}` };
};
const limitsOf = (choose: Draw) => ({ total: choose.integer(1, 5), perGroup: choose.integer(1, 3) });

describe('the next request of the queue', () => {
  holds('is never more than its bounds allow, nor nobody while somebody may', (choose) => {
    const limits = limitsOf(choose);
    const tenants = choose.integer(1, 4);
    const waiting = choose.many(choose.integer(0, 12), () => ({
      ...ticket(choose, 8),
      tenant: `t${choose.integer(1, tenants)}`,
    }));
    const holding: Ticket[] = [];
    const servedAt = new Map(choose.some(GROUPS).map((group) => [group, choose.integer(0, 9)]));
    for (;;) {
      const index = nextTicket(waiting, holding, limits, servedAt);
      const may = (one: Ticket) =>
        holding.length < limits.total &&
        holding.filter(({ group }) => group === one.group).length < limits.perGroup &&
        !holding.some(({ exclusive }) => exclusive === one.exclusive);
      expect(index === -1).toBe(!waiting.some(may));
      if (index === -1) break;
      const [next] = waiting.splice(index, 1);
      expect(may(next!)).toBe(true);
      expect(
        waiting
          .slice(0, index)
          .some((other) => other.tenant === next!.tenant && other.group === next!.group && may(other)),
      ).toBe(false);
      holding.push(next!);
    }
  });
});

interface Holder extends Ticket {
  release: () => void;
}

describe('the queue with arrivals and departures', () => {
  holds(
    'keeps its bounds, serves everybody who stays, and passes over no account twice for the same other',
    async (choose) => {
      const limits = limitsOf(choose);
      const queue = new FairQueue(limits);
      const holding: Holder[] = [];
      const served: Ticket[] = [];
      const waiting = new Map<Ticket, AbortController>();
      /** Of accounts that wait and hold no place: who was let in before them since, by account. */
      const passed = new Map<string, Set<string>>();
      const places = (group: string) => holding.filter((one) => one.group === group).length;
      const mayEnter = (one: Ticket) => !holding.some(({ exclusive }) => exclusive === one.exclusive);
      let [asked, gone] = [0, 0];

      const enter = (one: Ticket, release: () => void) => {
        // Whoever holds nothing and could be let in is passed over at most once by each other account.
        for (const other of new Set(
          [...waiting.keys()].filter((o) => o.group !== one.group && mayEnter(o)).map((o) => o.group),
        )) {
          if (places(other) > 0) continue;
          const by = passed.get(other) ?? new Set();
          expect(by.has(one.group), `${other} is passed over by ${one.group} again`).toBe(false);
          passed.set(other, by.add(one.group));
        }
        passed.delete(one.group);
        waiting.delete(one);
        holding.push({ ...one, release });
        served.push(one);
        expect(holding.length).toBeLessThanOrEqual(limits.total);
        expect(places(one.group)).toBeLessThanOrEqual(limits.perGroup);
        expect(new Set(holding.map(({ exclusive }) => exclusive)).size).toBe(holding.length);
      };
      const ask = () => {
        const one = ticket(choose, 8);
        const abort = new AbortController();
        asked++;
        waiting.set(one, abort);
        return queue.acquire(one, abort.signal).then(
          (release) => enter(one, release),
          () => {
            waiting.delete(one);
            gone++;
          },
        );
      };
      const settle = () => new Promise((resolve) => setImmediate(resolve));
      const leave = async () => {
        const [one] = holding.splice(choose.integer(0, holding.length - 1), 1);
        // What waits for this very stack could not have been let in until now.
        for (const other of waiting.keys()) if (other.exclusive === one?.exclusive) passed.delete(other.group);
        passed.delete(one!.group);
        one!.release();
        if (choose.chance(0.1)) one!.release();
        await settle();
      };

      const all: Promise<void>[] = [];
      for (let step = 0; step < 40; step++) {
        const what = choose.random();
        if (what < 0.55 || holding.length === 0) all.push(ask());
        else if (what < 0.9) await leave();
        else if (waiting.size > 0) choose.pick([...waiting.values()]).abort(new Error('given up'));
        await settle();
      }
      for (let left = asked; left > 0 && holding.length > 0; left--) await leave();
      await Promise.all(all);
      expect(queue.waiting).toBe(0);
      expect(served.length + gone).toBe(asked);
    },
  );
});
