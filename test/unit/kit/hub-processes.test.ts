import { afterEach, expect, it } from 'vitest';
import { Processes } from '../../kit/hubs/processes.ts';

let processes: Processes | undefined;
afterEach(() => processes?.stop());

it('HubProcesses.wait retries a failing check until it succeeds', async () => {
  processes = await Processes.begin('wait');
  processes.run('sleep', 'lasting', ['600']);
  let looks = 0;
  const look = async () => {
    looks++;
    if (looks === 1) throw new Error('not yet');
    return looks === 3 ? 'there' : undefined;
  };
  expect(await processes.wait('it', look)).toBe('there');
});

it('HubProcesses.wait rejects when the program has ended', async () => {
  processes = await Processes.begin('wait');
  processes.run('false', 'short', []);
  await expect(processes.wait('it to serve', async () => undefined)).rejects.toThrow(
    /^waited in vain for it to serve: short has ended; logs: .*coppice-wait-/,
  );
});
