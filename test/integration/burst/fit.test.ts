import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { recordedCases } from '../../kit/fit/cases.ts';
import { Recorder } from '../../kit/fit/recorder.ts';
import { type SchedulerServer, startScheduler } from '../../kit/fit/scheduler.ts';
import { rotates } from '../../kit/rotation.ts';

const TURNS = [0, 1, 2];
const SAMPLE = 30;
const { scheduler, cases } = recordedCases();

describe(`the recorded verdicts of kube-scheduler ${scheduler}`, () => {
  let server: SchedulerServer;
  let recorder: Recorder;

  beforeAll(async () => {
    server = await startScheduler();
    recorder = new Recorder(server.client);
    await recorder.prepare();
  });
  afterAll(() => server?.stop());

  it('belong to the kube-scheduler version that the toolchain builds', async () => {
    expect((await server.client.serverVersion()).gitVersion).toBe(scheduler);
  });

  for (const turn of TURNS)
    rotates(it, { of: TURNS.length, turns: [turn] })(`are what it says now, in sample ${turn}`, async () => {
      const step = cases.length / (SAMPLE * TURNS.length);
      const sample = Array.from(
        { length: SAMPLE },
        (_, index) => cases[Math.floor((index * TURNS.length + turn) * step)]!,
      );
      for (const { verdict, ...of } of sample) {
        let now = await recorder.verdict(of);
        // On a busy machine the scheduler may not have seen all when it was asked: it is given more time before it is believed.
        for (const settleMs of [1000, 5000]) if (now !== verdict) now = await recorder.verdict(of, settleMs);
        expect(now, of.name).toBe(verdict);
      }
    });
});
