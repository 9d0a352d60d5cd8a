import { describe, expect, it } from 'vitest';
import { openSession } from '../../../providers/aws/session.ts';
import { entraToken } from '../../../providers/azure/token.ts';
import { accessToken } from '../../../providers/gcp/token.ts';
import { Exchanges } from '../../../providers/web-identity.ts';
import * as aws from './aws/fake-aws.ts';
import * as azure from './azure/fake-azure.ts';
import { FakeGoogle } from './gcp/fake-google.ts';
import { context as googleContext } from './gcp/fixtures.ts';

const START = new Date('2026-11-20T10:00:00Z');
const minutesOn = (minutes: number) => new Date(+START + minutes * 60_000);

/** How one cloud is asked for a token, at a time, by a key that is kept for long. */
interface Bank {
  /** How many exchanges there were. */
  exchanges(): number;
  token(at: Date, other?: boolean): Promise<unknown>;
  [Symbol.asyncDispose](): Promise<void>;
}

const BANKS: [cloud: string, open: () => Promise<Bank>][] = [
  [
    'AWS (a role that a key may take)',
    async () => {
      const role = 'arn:aws:iam::123456789012:role/coppice';
      const given = `<AssumeRoleResult><Credentials><AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>s</SecretAccessKey>
        <SessionToken>t</SessionToken><Expiration>${minutesOn(60).toISOString()}</Expiration></Credentials></AssumeRoleResult>`;
      const fake = await aws.FakeAws.start(({ action }) => aws.xml(action, given));
      return {
        exchanges: () => fake.asked.length,
        token: (at, other = false) => {
          const { key, ...connection } = fake.connection();
          return openSession({ key, role: other ? `${role}-2` : role }, { ...connection, now: () => at });
        },
        [Symbol.asyncDispose]: () => fake[Symbol.asyncDispose](),
      };
    },
  ],
  [
    'Google (the key of a service account)',
    async () => {
      const fake = await FakeGoogle.start();
      const [one, two] = [googleContext(), googleContext()];
      const { 'serviceaccount.json': file = '' } = one.account.credentials;
      const changed = JSON.stringify({ ...JSON.parse(file), private_key_id: 'rotated' });
      two.account = { ...two.account, credentials: { 'serviceaccount.json': changed } };
      return {
        exchanges: () => fake.asked.length,
        token: (at, other = false) => accessToken({ ...(other ? two : one), now: () => at }, fake.endpoints),
        [Symbol.asyncDispose]: () => fake[Symbol.asyncDispose](),
      };
    },
  ],
  [
    'Azure (the secret of an application)',
    async () => {
      const fake = await azure.FakeAzure.start(() => undefined);
      const rotated = { ...azure.secret, clientSecret: 'another' };
      return {
        exchanges: () => fake.asked.length,
        token: (at, other = false) =>
          entraToken({ ...azure.context(other ? rotated : azure.secret), now: () => at }, fake.endpoints, 'scope'),
        [Symbol.asyncDispose]: () => fake[Symbol.asyncDispose](),
      };
    },
  ],
];

describe.each(BANKS)('a token of %s', (_cloud, open) => {
  it('is requested once for concurrent and later callers', async () => {
    await using bank = await open();
    const first = await Promise.all(Array.from({ length: 20 }, () => bank.token(START)));
    expect(new Set(first.map((one) => JSON.stringify(one))).size).toBe(1);
    expect(await bank.token(minutesOn(30))).toEqual(first[0]);
    expect(bank.exchanges()).toBe(1);
  });

  it('is requested again before its expiry, and for another secret', async () => {
    await using bank = await open();
    await bank.token(START);
    await bank.token(minutesOn(40));
    expect(bank.exchanges()).toBe(2);
    await bank.token(START, true);
    expect(bank.exchanges()).toBe(3);
  });
});

describe('a token exchange that several callers await', () => {
  const given = { value: 'token', expiresAt: minutesOn(60).toISOString() };
  const who = (signal = new AbortController().signal) => ({ now: START, signal });

  it('continues when one caller aborts', async () => {
    const kept = new Exchanges<string>();
    let answer = () => {};
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const leaving = new AbortController();
    const run = () => answered.then(() => given);
    const [gone, stays] = [kept.get(['k'], who(leaving.signal), run), kept.get(['k'], who(), run)];
    leaving.abort(new Error('gone'));
    await expect(gone).rejects.toThrow('gone');
    answer();
    expect(await stays).toBe('token');
  });

  it('rejects for all callers, and is repeated for the next', async () => {
    const kept = new Exchanges<string>();
    const refuse = () => Promise.reject(new Error('refused'));
    const both = await Promise.allSettled([kept.get(['k'], who(), refuse), kept.get(['k'], who(), refuse)]);
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(await kept.get(['k'], who(), async () => given)).toBe('token');
  });
});
