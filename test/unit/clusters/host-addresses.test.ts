import { expect, it } from 'vitest';
import { HostAddresses } from '../../../operator/clusters/host-addresses.ts';
import { FakeClock } from '../kube/fake-clock.ts';

const MINUTE = 60_000;

/** A name, and name servers that tell what the test says: addresses, an error, or nothing at all. */
async function follow(host = 'api.example.com') {
  const clock = new FakeClock();
  const asked: string[] = [];
  let answer: string[] | Error | undefined = ['192.0.2.1', '2001:db8::1'];
  let changes = 0;
  const resolve = (name: string) => {
    asked.push(name);
    if (answer === undefined) return new Promise<string[]>(() => {});
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
  };
  const followed = new HostAddresses(host, () => changes++, { resolve, clock });
  const settle = () => new Promise((done) => setImmediate(done));
  const pass = async (minutes: number) => {
    for (let minute = 0; minute < minutes; minute++) {
      clock.advance(MINUTE);
      await settle();
    }
  };
  return {
    followed,
    asked,
    clock,
    settle,
    pass,
    changes: () => changes,
    say: (next: typeof answer) => {
      answer = next;
    },
  };
}

it('HostAddresses returns an address itself, without a look-up', async () => {
  for (const host of ['192.0.2.9', '2001:db8::9']) {
    const { followed, asked, pass } = await follow(host);
    await followed.start();
    await pass(2);
    expect([followed.list(), followed.problem, asked]).toEqual([[host], undefined, []]);
  }
});

it('HostAddresses returns addresses of both families for a name, and reports changes', async () => {
  const { followed, say, pass, changes } = await follow();
  await followed.start();
  expect(followed.list()).toEqual(['192.0.2.1', '2001:db8::1']);
  await pass(3);
  say(['2001:db8::1', '192.0.2.1']);
  await pass(1);
  expect(changes()).toBe(0);
  say(['192.0.2.2']);
  await pass(1);
  expect([followed.list(), changes()]).toEqual([['192.0.2.1', '192.0.2.2', '2001:db8::1'], 1]);
  // What was told before serves on for a while, and not for ever.
  await pass(58);
  expect(changes()).toBe(1);
  await pass(3);
  expect([followed.list(), changes()]).toEqual([['192.0.2.2'], 2]);
});

it('HostAddresses keeps its addresses while look-ups fail, and reports why none is known', async () => {
  const known = await follow();
  await known.followed.start();
  known.say(Object.assign(new Error('getaddrinfo EAI_AGAIN'), { code: 'EAI_AGAIN' }));
  await known.pass(120);
  expect([known.followed.list(), known.followed.problem]).toEqual([['192.0.2.1', '2001:db8::1'], undefined]);
  expect(known.changes()).toBe(0);

  const unknown = await follow();
  unknown.say(Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' }));
  await unknown.followed.start();
  expect([unknown.followed.list(), unknown.followed.problem]).toEqual([[], 'ENOTFOUND']);
  unknown.say(['192.0.2.1']);
  await unknown.pass(1);
  expect([unknown.followed.list(), unknown.followed.problem, unknown.changes()]).toEqual([['192.0.2.1'], undefined, 1]);
});

it('HostAddresses does not wait for silent name servers, and limits its addresses', async () => {
  const { followed, say, clock, pass } = await follow();
  say(undefined);
  const started = followed.start();
  clock.advance(5_000);
  await started;
  expect(followed.problem).toBe('no answer within 5 s');
  say(Array.from({ length: 300 }, (_, index) => `192.0.${index >> 8}.${index & 255}`));
  await pass(1);
  expect(followed.list()).toHaveLength(64);
});

it('HostAddresses makes no look-up after stop', async () => {
  const { followed, asked, pass } = await follow();
  await followed.start();
  followed.stop();
  await pass(5);
  expect(asked).toHaveLength(1);
});
