import { expect, it } from 'vitest';
import { makeRedactor } from '../../../../providers/pulumi/redaction.ts';

const key = '-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQEF\n-----END PRIVATE KEY-----\n';
const google = JSON.stringify({ type: 'service_account', project_id: 'my-project', private_key: key });

it.each([
  ['as it is', 'wJalrXUtnFEMI', 'key wJalrXUtnFEMI is wrong', 'key [secret] is wrong'],
  ['more than once', 'wJalrXUtnFEMI', 'wJalrXUtnFEMI=wJalrXUtnFEMI', '[secret]=[secret]'],
  ['in an address', 'a/b+c d==', 'GET /?k=a%2Fb%2Bc%20d%3D%3D', 'GET /?k=[secret]'],
  ['in base64', 'client-secret', `Basic ${Buffer.from('client-secret').toString('base64')}`, 'Basic [secret]'],
  ['in JSON', 'with"quote"', '{"p":"with\\"quote\\""}', '{"p":"[secret]"}'],
  ['with special characters', '$&(.*)[x]', 'p=$&(.*)[x]', 'p=[secret]'],
  ['a line of a key', key, 'at line kqhkiG9w0BAQEF', 'at line [secret]'],
  ['a key within a document', google, 'key MIIEvQIBADANBg of my-project', 'key [secret] of my-project'],
  ['a whole document', google, `given ${google}`, 'given [secret]'],
  ['too short to be one', 'abc', 'abc', 'abc'],
])('makeRedactor removes a secret %s', (_, secret, text, expected) => {
  expect(makeRedactor([secret])(text)).toBe(expected);
});

it('makeRedactor leaves no rest of a secret that contains another one', () => {
  expect(makeRedactor(['hunter2', 'hunter2-and-more'])('hunter2-and-more, hunter2')).toBe('[secret], [secret]');
});

it('makeRedactor ignores absent secrets', () => {
  expect(makeRedactor([undefined, ''])('text')).toBe('text');
});
