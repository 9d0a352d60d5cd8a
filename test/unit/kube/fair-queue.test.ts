import { describe, expect, it } from 'vitest';
import { FairQueue, nextTicket } from '../../../operator/kube/fair-queue.ts';

const ticket = (text: string) => {
  const [of = '', exclusive = ''] = text.split(':');
  const [tenant = '', group = tenant] = of.split('/');
  return { tenant, group, exclusive };
};
const tickets = (text: string) => (text === '' ? [] : text.split(' ').map(ticket));
const limits = { total: 3, perGroup: 2 };

describe('nextTicket', () => {
  it.each([
    ['nobody waits', '', '', {}, -1],
    ['all places are taken', 'a:4', 'a:1 b:2 c:3', {}, -1],
    ['first come, first served', 'a:1 a:2', '', {}, 0],
    ['the group has its share', 'a:3 b:4', 'a:1 a:2', {}, 1],
    ['the group has its share, and nobody else waits', 'a:3', 'a:1 a:2', {}, -1],
    ['somebody works on the stack', 'a:1 a:2', 'a:1', {}, 1],
    ['only the stack that is worked on is waited for', 'a:1', 'a:1', {}, -1],
    ['fewest places first', 'a:2 b:3', 'a:1', {}, 1],
    ['among equals, longest not served', 'a:1 b:2 c:3', '', { a: 5, b: 3, c: 4 }, 1],
    ['a tenant with places in no account, before one with many accounts', 'a/y:2 b/x:3', 'a/x:1', {}, 1],
    ['two tenants in one account take turns', 'a/x:1 b/x:2', '', { a: 2, b: 1 }, 1],
    ['an account that is full is full for all tenants', 'b/x:3 b/y:4', 'a/x:1 a/x:2', {}, 1],
    ['of a tenant, the account with fewest places', 'a/x:2 a/y:3', 'a/x:1', {}, 1],
    ['of a tenant, the account not served for longest', 'a/x:1 a/y:2', '', { 'a\nx': 2, 'a\ny': 1 }, 1],
  ])('%s', (_, waiting, holding, servedAt, expected) => {
    expect(nextTicket(tickets(waiting), tickets(holding), limits, new Map(Object.entries(servedAt)))).toBe(expected);
  });
});

describe('FairQueue', () => {
  /** Lets each of the tickets in, one place in all, and tells in which order. */
  async function order(asked: string[]): Promise<string[]> {
    const queue = new FairQueue({ total: 1, perGroup: 1 });
    const served: string[] = [];
    const { signal } = new AbortController();
    await Promise.all(
      asked.map(async (text) => {
        const release = await queue.acquire(ticket(text), signal);
        served.push(text);
        release();
      }),
    );
    return served;
  }

  it('alternates between accounts, however many tickets of one account wait', async () => {
    expect(await order(['a:1', 'a:2', 'a:3', 'a:4', 'b:5', 'b:6'])).toEqual(['a:1', 'b:5', 'a:2', 'b:6', 'a:3', 'a:4']);
  });

  it('lets the only cluster of one tenant in after the first of fifty of another tenant', async () => {
    for (const accounts of [1, 50]) {
      const fifty = Array.from({ length: 50 }, (_, index) => `big/account-${index % accounts}:${index}`);
      const served = await order([...fifty, 'small/account-0:only']);
      expect(served.indexOf('small/account-0:only')).toBe(1);
      expect(served).toHaveLength(51);
    }
  });

  it('puts a new account behind those that already wait', async () => {
    const queue = new FairQueue({ total: 1, perGroup: 1 });
    const { signal } = new AbortController();
    const served: string[] = [];
    const first = await queue.acquire(ticket('a:1'), signal);
    const ask = (text: string) =>
      queue.acquire(ticket(text), signal).then((release) => {
        served.push(text);
        return release;
      });
    const b = ask('b:2');
    const c = ask('c:3');
    first();
    (await b)();
    const again = ask('b:4');
    (await c)();
    await again;
    expect(served).toEqual(['b:2', 'c:3', 'b:4']);
  });

  it('drops a ticket whose signal aborts', async () => {
    const queue = new FairQueue({ total: 1, perGroup: 1 });
    const { signal } = new AbortController();
    const first = await queue.acquire(ticket('a:1'), signal);
    const impatient = new AbortController();
    const second = queue.acquire(ticket('a:2'), impatient.signal);
    const third = queue.acquire(ticket('a:3'), signal);
    impatient.abort(new Error('given up'));
    await expect(second).rejects.toThrow('given up');
    first();
    await third;
    expect(queue.waiting).toBe(0);
  });

  it('releases a slot only once', async () => {
    const queue = new FairQueue({ total: 1, perGroup: 1 });
    const { signal } = new AbortController();
    const first = await queue.acquire(ticket('a:1'), signal);
    first();
    await queue.acquire(ticket('a:2'), signal);
    first();
    let isIn = false;
    void queue.acquire(ticket('b:3'), signal).then(() => {
      isIn = true;
    });
    await new Promise(setImmediate);
    expect(isIn).toBe(false);
  });
});
