import { describe, expect, it } from 'vitest';
import { CoppiceError } from '../../../../operator/api/errors.ts';
import { route53 } from '../../../../providers/aws/dns.ts';
import type { RecordChange } from '../../../../providers/dns/plan.ts';
import { FakeAws } from './fake-aws.ts';

const zone = { id: 'Z1', domain: 'example.com', private: false };
const made = (name: string): RecordChange =>
  ({ after: { name, type: 'A', ttl: 60, values: ['192.0.2.1'] } }) as RecordChange;

/** As the API reference shows it: an element of its own, without a code, with a message for each change. */
const batch = (...messages: string[]) => `<?xml version="1.0" encoding="UTF-8"?>
  <InvalidChangeBatch xmlns="https://route53.amazonaws.com/doc/2013-04-01/">
    <Messages>${messages.map((one) => `<Message>${one}</Message>`).join('')}</Messages><RequestId>b25f48e8</RequestId>
  </InvalidChangeBatch>`;
/** As all of AWS' XML APIs refuse. */
const error = (message: string) =>
  `<ErrorResponse><Error><Type>Sender</Type><Code>InvalidChangeBatch</Code><Message>[${message}]</Message></Error></ErrorResponse>`;

async function refused(body: string): Promise<CoppiceError> {
  await using aws = await FakeAws.start(() => ({ status: 400, body }));
  const client = route53(async () => aws.connection());
  const caught = await client.change({} as never, zone, [made('api.example.com')]).catch((thrown: unknown) => thrown);
  expect(caught).toBeInstanceOf(CoppiceError);
  return caught as CoppiceError;
}

const EXISTS = "Tried to create resource record set [name='api.example.com.', type='A'] but it already exists";
const GONE = "Tried to delete resource record set [name='old.example.com.', type='A'] but it was not found";
const DIFFERS =
  "Tried to delete resource record set [name='old.example.com.', type='A'] but the values provided do not match the current values";

describe('a batch that Route 53 refuses', () => {
  it('reports what is wrong with each change', async () => {
    const { message } = await refused(batch(EXISTS, GONE));
    expect(message).toContain(EXISTS);
    expect(message).toContain(GONE);
    expect(message).toContain('zone example.com');
  });

  it.each([EXISTS, GONE, DIFFERS])('is retryable after a concurrent change: %s', async (said) => {
    for (const body of [batch(said), error(said)])
      expect(await refused(body)).toMatchObject({
        code: 'ERR_RETRYABLE_INFRA_DEPENDENCIES',
        message: `records of zone example.com were changed by somebody else meanwhile: ${body.includes('[Tried') ? `[${said}]` : said}`,
      });
  });

  it.each([
    'RRSet of type CNAME with DNS name api.example.com. is not permitted as it conflicts with other records with the same DNS name in zone example.com.',
    'RRSet of type A with DNS name api.example.com. is not permitted because a conflicting RRSet of type CNAME with the same DNS name already exists in zone example.com.',
  ])('reports a record of others that conflicts: %s', async (said) => {
    expect(await refused(batch(said))).toMatchObject({ code: 'ERR_INFRA_DEPENDENCIES' });
  });

  it('asks for another name if the zone cannot hold this one', async () => {
    const said = 'RRSet with DNS name api.example.org. is not permitted in zone example.com.';
    expect(await refused(batch(said))).toMatchObject({
      code: 'ERR_CONFIGURATION_PROBLEM',
      message: `Route 53 refuses the records in zone example.com: ${said}`,
    });
  });
});
