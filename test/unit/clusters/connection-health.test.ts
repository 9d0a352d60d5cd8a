import { expect, it } from 'vitest';
import { ConnectionHealth } from '../../../operator/clusters/connection-health.ts';
import { idle } from '../../kit/turns.ts';
import { FakeClock } from '../kube/fake-clock.ts';

/** A line whose server answers or not, and what is told of it. */
function testbed() {
  const clock = new FakeClock();
  const began = clock.now();
  const told: string[] = [];
  const server = { answers: true, asked: 0 };
  const line = new ConnectionHealth({
    ask: async () => {
      server.asked++;
      return server.answers;
    },
    told: (answers) => told.push(`${answers ? 'answers' : 'silent'} at ${(clock.now() - began) / 1000}`),
    clock,
    random: () => 0.5,
  });
  const pass = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      clock.advance(1000);
      await idle();
    }
  };
  return { clock, told, server, line, pass };
}

it('ConnectionHealth sends no request while nothing fails', async () => {
  const { clock, server, pass } = testbed();
  await pass(600);
  expect(server.asked).toBe(0);
  expect(clock.timers).toBe(0);
});

it('ConnectionHealth sends one request when a watch broke and the server answers', async () => {
  const { clock, told, server, line, pass } = testbed();
  line.doubt();
  line.doubt();
  await pass(60);
  expect(server.asked).toBe(1);
  expect(told).toEqual([]);
  expect(line.answers).toBe(true);
  expect(clock.timers).toBe(0);
});

it('ConnectionHealth does not report a restarted server', async () => {
  const { told, server, line, pass } = testbed();
  server.answers = false;
  line.doubt();
  await pass(3);
  server.answers = true;
  await pass(60);
  expect(told).toEqual([]);
  expect(line.broken.aborted).toBe(false);
});

it('ConnectionHealth reports within seconds, once, that the server does not answer, and that it answers again', async () => {
  const { clock, told, server, line, pass } = testbed();
  server.answers = false;
  line.doubt();
  const { broken } = line;
  await pass(300);
  expect(told).toEqual(['silent at 5']);
  expect(broken.aborted).toBe(true);
  expect(broken.reason).toMatchObject({ retryable: true, message: 'the API server of the cluster does not answer' });
  // For as long as it lasts, a few requests a minute.
  expect(server.asked).toBeLessThan(30);
  server.answers = true;
  await pass(16);
  expect(told).toHaveLength(2);
  expect(line.answers).toBe(true);
  expect(line.broken.aborted).toBe(false);
  expect(clock.timers).toBe(0);
});

it('ConnectionHealth sends no request after stop', async () => {
  const { clock, told, server, line, pass } = testbed();
  server.answers = false;
  line.doubt();
  await pass(2);
  line.stop();
  await pass(60);
  line.doubt();
  await idle();
  expect(told).toEqual([]);
  expect(clock.timers).toBe(0);
  expect(server.asked).toBeLessThan(5);
});
