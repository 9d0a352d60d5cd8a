import { describe, expect, it } from 'vitest';
import { CoppiceError } from '../../../operator/api/errors.ts';
import { query } from '../../../providers/aws/api.ts';
import { taggedResources as azureTagged } from '../../../providers/azure/tagged.ts';
import { LONGEST_PAUSE_MS, type Patience, retryAfter, sendPatiently } from '../../../providers/cloud-http.ts';
import { checkAccount } from '../../../providers/gcp/account.ts';
import { FakeClock } from '../kube/fake-clock.ts';
import * as aws from './aws/fake-aws.ts';
import * as azure from './azure/fake-azure.ts';
import { FakeGoogle } from './gcp/fake-google.ts';
import { context as googleContext } from './gcp/fixtures.ts';

const NOW = Date.parse('2026-11-23T20:00:00Z');
const later = (headers: Patience['headers'] = {}, status = 429): Patience => ({ status, headers });
const done: Patience = { status: 200, headers: {} };

/** Sends what is answered in turn; says how long was waited before each attempt but the first, and with what it ended. */
async function asked(method: string, answers: Patience[], isThrottled?: (answer: Patience) => boolean) {
  const clock = new FakeClock();
  const pauses: number[] = [];
  let last = clock.now();
  let sent = 0;
  const attempt = async () => {
    if (sent > 0) pauses.push(clock.now() - last);
    last = clock.now();
    return answers[sent++]!;
  };
  const { signal } = new AbortController();
  const work = sendPatiently(method, signal, attempt, isThrottled, { clock, now: () => NOW, random: () => 0 });
  let ended = false;
  void work.finally(() => {
    ended = true;
  });
  for (let turn = 0; turn < 1000 && !ended; turn++) {
    await Promise.resolve();
    if (clock.timers > 0) clock.advance(250);
  }
  return { ...(await work), sent, pauses };
}

describe('retryAfter of an answer', () => {
  it.each([
    ['seconds', '7', 7000],
    ['no time', '0', 0],
    ['a moment', 'Mon, 23 Nov 2026 20:00:09 GMT', 9000],
    ['a moment that is over', 'Mon, 23 Nov 2026 19:00:00 GMT', 0],
    ['nothing', '', undefined],
    ['something else', 'soon', undefined],
    ['less than nothing', '-5', undefined],
  ])('reads %s', (_what, header, expected) => {
    expect(retryAfter({ headers: { 'retry-after': header } }, NOW)).toBe(expected);
  });
});

describe('a throttled request', () => {
  it('is retried after the seconds, or at the time, that the cloud names', async () => {
    const answers = [
      later({ 'retry-after': '2' }),
      later({ 'retry-after': 'Mon, 23 Nov 2026 20:00:05 GMT' }, 503),
      done,
    ];
    expect(await asked('GET', answers)).toMatchObject({ status: 200, pauses: [2000, 5000] });
  });

  it('is sent three times at most, with growing pauses, if the cloud names no time', async () => {
    expect(await asked('POST', [later(), later(), later(), done])).toMatchObject({
      status: 429,
      sent: 3,
      pauses: [250, 500],
    });
  });

  it('is not retried for a pause of more than half a minute', async () => {
    const headers = { 'retry-after': String(LONGEST_PAUSE_MS / 1000 + 1) };
    expect(await asked('GET', [later(headers), done])).toMatchObject({ status: 429, sent: 1 });
  });

  it('is recognized by cloud-specific errors with any failure status', async () => {
    const answers = [later({}, 400), done];
    expect(await asked('POST', answers, ({ status }) => status === 400)).toMatchObject({ status: 200, sent: 2 });
    expect(await asked('POST', answers)).toMatchObject({ status: 400, sent: 1 });
  });

  it('is not retried after 503 for a request that creates something', async () => {
    expect(await asked('POST', [later({}, 503), done])).toMatchObject({ status: 503, sent: 1 });
  });

  it('stops when its caller aborts', async () => {
    const controller = new AbortController();
    const work = sendPatiently('GET', controller.signal, async () => later({ 'retry-after': '20' }));
    controller.abort(new Error('enough'));
    await expect(work).rejects.toThrow('enough');
  });
});

describe('a client of a cloud', () => {
  /** Says that there were too many, then what comes of it. */
  const twice = <Answer>(refusal: Answer, given: Answer) => {
    let refused = false;
    return () => {
      if (refused) return given;
      refused = true;
      return refusal;
    };
  };

  it.each([
    ['Throttling', 400],
    ['RequestLimitExceeded', 503],
    ['TooManyRequestsException', 429],
  ])('retries a throttled call to AWS: %s', async (code, status) => {
    const next = twice(aws.refusal(status, code), aws.identity('arn:aws:iam::123456789012:user/me'));
    await using fake = await aws.FakeAws.start(next);
    await query(fake.connection(), 'sts', 'GetCallerIdentity');
    expect(fake.asked).toHaveLength(2);
  });

  it('retries a throttled call to Google, which answers 403', async () => {
    const error = { code: 403, message: 'Rate Limit Exceeded', errors: [{ reason: 'rateLimitExceeded' }] };
    const next = twice({ status: 403, body: { error } as object }, { status: 200, body: { permissions: [] } });
    await using google = await FakeGoogle.start(({ path }) => (path === '/token' ? undefined : next()));
    await checkAccount(googleContext(), google.endpoints);
    expect(google.calls).toHaveLength(2);
  });

  it('retries a throttled call to Azure and to Entra ID', async () => {
    const refused: azure.Answer = { status: 429, body: { error: { code: 'TooManyRequests' } } };
    await using fake = await azure.FakeAzure.start(twice(refused, { body: {} }), twice(refused, azure.GIVEN));
    await azureTagged(azure.context(), fake.endpoints);
    expect(fake.asked).toHaveLength(4);
  });

  it('reports lasting throttling with the pause that the cloud asks for', async () => {
    await using fake = await azure.FakeAzure.start(() => ({
      status: 429,
      headers: { 'retry-after': '300' },
      body: { error: { code: 'TooManyRequests', message: 'Slow down.' } },
    }));
    const error = await azureTagged(azure.context(), fake.endpoints).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(CoppiceError);
    expect(error).toMatchObject({
      code: 'ERR_INFRA_RATE_LIMITS_EXCEEDED',
      message: expect.stringContaining('Slow down (asks to wait for 300 s)'),
    });
    expect(fake.asked.filter(({ path }) => path.includes('ResourceGraph'))).toHaveLength(1);
  });
});
