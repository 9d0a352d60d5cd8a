import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parseKubeconfig } from '../../../operator/kube/kubeconfig.ts';
import { kubeconfig } from '../../../operator/pki/kubeconfig.ts';

const directory = mkdtempSync(join(tmpdir(), 'coppice-kubeconfig-'));
afterAll(() => rmSync(directory, { recursive: true }));
writeFileSync(join(directory, 'ca.crt'), 'CA FILE');

const base64 = (text: string) => Buffer.from(text).toString('base64');

function config(cluster: object, user: object, more: object = {}): string {
  return JSON.stringify({
    clusters: [{ name: 'c', cluster: { server: 'https://host:6443', ...cluster } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'ctx', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'ctx',
    ...more,
  });
}

describe('what a kubeconfig may say', () => {
  const cases: { name: string; yaml: string; expected: object }[] = [
    {
      name: 'certificates inline',
      yaml: config(
        { 'certificate-authority-data': base64('CA') },
        { 'client-certificate-data': base64('CERT'), 'client-key-data': base64('KEY') },
      ),
      expected: { server: 'https://host:6443', ca: 'CA', cert: 'CERT', key: 'KEY' },
    },
    {
      name: 'a file relative to it',
      yaml: config({ 'certificate-authority': 'ca.crt' }, {}),
      expected: { ca: 'CA FILE' },
    },
    { name: 'a token', yaml: config({}, { token: 'secret' }), expected: { token: 'secret', ca: undefined } },
    {
      name: 'a token wins over a token file',
      yaml: config({}, { token: 't', tokenFile: 'f' }),
      expected: { token: 't', tokenFile: undefined },
    },
    {
      name: 'a token file',
      yaml: config({}, { tokenFile: 'token' }),
      expected: { tokenFile: join(directory, 'token') },
    },
    {
      name: 'no verification',
      yaml: config({ 'insecure-skip-tls-verify': true }, {}),
      expected: { insecureSkipTlsVerify: true },
    },
    { name: 'another server name', yaml: config({ 'tls-server-name': 'api' }, {}), expected: { serverName: 'api' } },
    {
      name: 'impersonation',
      yaml: config({}, { as: 'jane', 'as-groups': ['a', 'b'] }),
      expected: { impersonate: { user: 'jane', groups: ['a', 'b'] } },
    },
  ];
  for (const { name, yaml, expected } of cases) {
    it(name, () => expect(parseKubeconfig(yaml, { directory })).toMatchObject(expected));
  }

  it('a plugin makes no request by itself', () => {
    const { credentials } = parseKubeconfig(config({}, { exec: { command: 'false' } }));
    expect(credentials).toBeTypeOf('function');
  });

  it('what operator/pki writes', () => {
    const yaml = kubeconfig({ server: 'https://h:1', ca: 'CA', cert: 'C', key: 'K', name: 'n', user: 'u' });
    expect(parseKubeconfig(yaml)).toMatchObject({ server: 'https://h:1', ca: 'CA', cert: 'C', key: 'K' });
  });

  it('a context by name', () => {
    const contexts = [
      { name: 'ctx', context: { cluster: 'c', user: 'u' } },
      { name: 'other', context: { cluster: 'd', user: 'u' } },
    ];
    const clusters = [
      { name: 'c', cluster: { server: 'https://c' } },
      { name: 'd', cluster: { server: 'https://d' } },
    ];
    expect(parseKubeconfig(config({}, {}, { contexts, clusters }), { context: 'other' }).server).toBe('https://d');
  });
});

describe('what is wrong with one', () => {
  const cases: { name: string; yaml: string; error: string }[] = [
    { name: 'empty', yaml: '', error: 'not a kubeconfig' },
    { name: 'something else', yaml: 'kind: Pod', error: 'not a kubeconfig' },
    { name: 'no current context', yaml: config({}, {}, { 'current-context': '' }), error: 'no current-context' },
    { name: 'unknown context', yaml: config({}, {}, { 'current-context': 'x' }), error: 'no context "x"' },
    { name: 'unknown cluster', yaml: config({}, {}, { clusters: [] }), error: 'no cluster "c"' },
    { name: 'unknown user', yaml: config({}, {}, { users: [] }), error: 'no user "u"' },
    { name: 'a password', yaml: config({}, { username: 'u', password: 'p' }), error: 'password' },
    { name: 'a proxy', yaml: config({ 'proxy-url': 'http://p' }, {}), error: 'proxy-url' },
  ];
  for (const { name, yaml, error } of cases) it(name, () => expect(() => parseKubeconfig(yaml)).toThrow(error));
});
