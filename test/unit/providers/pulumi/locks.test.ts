import { describe, expect, it } from 'vitest';
import { CoppiceError } from '../../../../operator/api/errors.ts';
import { firstLivingHolder, holdersIn, lockedBy } from '../../../../providers/pulumi/locks.ts';

type Witness = Parameters<typeof firstLivingHolder>[1];

/** As engine 3.256 writes it. */
const refusal = (...holders: string[]) =>
  [
    `error: the stack is currently locked by ${holders.length} lock(s). Either wait for the other process(es) to end or delete the lock file with \`pulumi cancel\`.`,
    ...holders.map((holder) => `  file:///state/.pulumi/locks/x.json: created by ${holder} at 2026-11-21T06:24:01Z`),
  ].join('\n');

describe('holdersIn', () => {
  it('returns every holder', () => {
    expect(holdersIn(refusal('root@vm (pid 12)', 'ann@pod-1.ns (pid 7)'))).toEqual([
      { user: 'root', host: 'vm', pid: 12, since: '2026-11-21T06:24:01Z' },
      { user: 'ann', host: 'pod-1.ns', pid: 7, since: '2026-11-21T06:24:01Z' },
    ]);
  });
  it('returns none for other errors', () => {
    expect(holdersIn('error: no stack named x found')).toEqual([]);
  });
});

describe('firstLivingHolder', () => {
  const witness: Witness = {
    host: 'vm',
    // 1 is dead, 2 lives, of others nothing is known.
    isDeadEngine: (pid) => (pid === 1 ? true : pid === 2 ? false : undefined),
    isGoneHost: (host) => host === 'gone-pod',
  };
  it.each([
    ['an engine of ours that is dead', ['root@vm (pid 1)'], undefined],
    ['an engine of ours that lives', ['root@vm (pid 2)'], 2],
    ['a process of this machine that we did not start', ['root@vm (pid 3)'], 3],
    ['a dead number on another machine', ['root@other (pid 1)'], 1],
    ['a machine that is gone', ['root@gone-pod (pid 9)'], undefined],
    ['a dead and a living one', ['root@vm (pid 1)', 'root@other (pid 4)'], 4],
  ])('decides about %s', (_, holders, living) => {
    expect(firstLivingHolder(holdersIn(refusal(...holders)), witness)?.pid).toBe(living);
  });
});

it('the error of a locked stack names the holder and is retryable', () => {
  const error = lockedBy('a.cluster', holdersIn(refusal('ann@laptop (pid 7)'))[0]);
  expect(error).toBeInstanceOf(CoppiceError);
  expect(error.code).toBe('ERR_RETRYABLE_INFRA_DEPENDENCIES');
  expect(error.message).toMatch(/a\.cluster is locked since 2026-11-21T06:24:01Z by process 7 of ann on laptop/);
});
