import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KubeConfig } from '@kubernetes/client-node';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { proxyTo } from '../../../operator/kube/http/http-proxy.ts';
import {
  type Connection,
  loadOwnKubeconfig,
  parseAdministratorsKubeconfig,
  parseOwnKubeconfig,
  parseUntrustedKubeconfig,
  rewriteUntrustedKubeconfig,
  selfContainedKubeconfig,
} from '../../../operator/kube/kubeconfig.ts';
import { writeKubeconfigText } from '../../../operator/pki/kubeconfig.ts';
import { aliasBomb } from '../../kit/alias-bomb.ts';

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

describe('parseOwnKubeconfig', () => {
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
    it(name, () => expect(parseOwnKubeconfig(yaml, { directory })).toMatchObject(expected));
  }

  it('does not run the credential plugin before the first request', () => {
    const { credentials } = parseOwnKubeconfig(config({}, { exec: { command: 'false' } }));
    expect(credentials).toBeTypeOf('function');
  });

  it('parses kubeconfigs of operator/pki', () => {
    const yaml = writeKubeconfigText({ server: 'https://h:1', ca: 'CA', cert: 'C', key: 'K', name: 'n', user: 'u' });
    expect(parseOwnKubeconfig(yaml)).toMatchObject({ server: 'https://h:1', ca: 'CA', cert: 'C', key: 'K' });
  });

  it('parses a context by name', () => {
    const contexts = [
      { name: 'ctx', context: { cluster: 'c', user: 'u' } },
      { name: 'other', context: { cluster: 'd', user: 'u' } },
    ];
    const clusters = [
      { name: 'c', cluster: { server: 'https://c' } },
      { name: 'd', cluster: { server: 'https://d' } },
    ];
    expect(parseOwnKubeconfig(config({}, {}, { contexts, clusters }), { context: 'other' }).server).toBe('https://d');
  });
});

describe('parseOwnKubeconfig names the fault', () => {
  const cases: { name: string; yaml: string; error: string }[] = [
    { name: 'empty', yaml: '', error: 'not a kubeconfig' },
    { name: 'something else', yaml: 'kind: Pod', error: 'not a kubeconfig' },
    { name: 'no current context', yaml: config({}, {}, { 'current-context': '' }), error: 'no current-context' },
    { name: 'unknown context', yaml: config({}, {}, { 'current-context': 'x' }), error: 'no context "x"' },
    { name: 'unknown cluster', yaml: config({}, {}, { clusters: [] }), error: 'no cluster "c"' },
    { name: 'unknown user', yaml: config({}, {}, { users: [] }), error: 'no user "u"' },
    { name: 'a password', yaml: config({}, { username: 'u', password: 'p' }), error: 'password' },
    {
      name: 'a proxy that cannot be used',
      yaml: config({ 'proxy-url': 'socks5://u:hush@p' }, {}),
      error: 'proxy-url of cluster "c" names no proxy that can be used',
    },
    {
      name: 'a proxy to a server without https',
      yaml: config({ 'proxy-url': 'http://p', server: 'http://host' }, {}),
      error: 'proxy-url of cluster "c" is not used for a server without https',
    },
  ];
  for (const { name, yaml, error } of cases) it(name, () => expect(() => parseOwnKubeconfig(yaml)).toThrow(error));
});

describe('parseUntrustedKubeconfig', () => {
  const withData = {
    cluster: { 'certificate-authority-data': base64('CA'), 'tls-server-name': 'api' },
    user: { 'client-certificate-data': base64('CERT'), 'client-key-data': base64('KEY'), token: 't' },
  };

  it('accepts a self-contained kubeconfig', () => {
    expect(parseUntrustedKubeconfig(config(withData.cluster, withData.user))).toMatchObject({
      server: 'https://host:6443',
      ca: 'CA',
      serverName: 'api',
      cert: 'CERT',
      key: 'KEY',
      token: 't',
    });
    const off = { 'insecure-skip-tls-verify': false, 'proxy-url': '' };
    expect(parseUntrustedKubeconfig(config({ ...withData.cluster, ...off }, withData.user)).ca).toBe('CA');
  });

  const refused: [field: string, cluster: object, user: object][] = [
    ['certificate-authority', { 'certificate-authority': join(directory, 'ca.crt') }, {}],
    ['insecure-skip-tls-verify', { 'insecure-skip-tls-verify': true }, {}],
    ['proxy-url', { 'proxy-url': 'http://p' }, {}],
    ['a server without https', { server: 'http://169.254.169.254' }, {}],
    ['client-certificate', {}, { 'client-certificate': join(directory, 'ca.crt') }],
    ['client-key', {}, { 'client-key': join(directory, 'ca.crt') }],
    ['tokenFile', {}, { tokenFile: join(directory, 'ca.crt') }],
    ['exec', {}, { exec: { command: 'true' } }],
    ['auth-provider', {}, { 'auth-provider': { name: 'gcp' } }],
    ['Exec', {}, { Exec: { command: 'true' } }],
  ];
  it.each(refused)('refuses %s, with the field and what to do', (field, cluster, user) => {
    const whose = Object.keys(cluster).length > 0 ? 'cluster "c"' : 'user "u"';
    expect(() => parseUntrustedKubeconfig(config(cluster, user), 'the kubeconfig of Secret shop/x-kubeconfig')).toThrow(
      expect.objectContaining({
        code: 'ERR_RETRYABLE_CONFIGURATION_PROBLEM',
        message: `the kubeconfig of Secret shop/x-kubeconfig is refused: ${whose} of context "ctx" has ${field}`,
        advice: expect.stringMatching(/^Put a kubeconfig there/),
      }),
    );
  });

  it('refuses aliases that would expand to gigabytes, at once', () => {
    const yaml = `${aliasBomb()}\nclusters: [{name: c, cluster: {server: *b7}}]\ncurrent-context: x\n`;
    expect(() => parseUntrustedKubeconfig(yaml)).toThrow(/^the kubeconfig is not a kubeconfig: .*maxAliases/);
  });

  it('does not change prototypes, and keeps text that YAML 1.1 reads as other types', () => {
    const said = (more: string, top = '') => `${top}
clusters: [{name: on, cluster: {server: "https://host:6443"${more}}}]
users: [{name: off, user: {token: 2026-01-01}}]
contexts: [{name: no, context: {cluster: on, user: off}}]
current-context: no
`;
    const expected = { server: 'https://host:6443', token: '2026-01-01', insecureSkipTlsVerify: undefined };
    expect(parseUntrustedKubeconfig(said(''))).toMatchObject(expected);
    expect(() => parseUntrustedKubeconfig(said('', '__proto__: {polluted: yes}'))).toThrow('it has __proto__');
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    const hidden = said(', __proto__: {insecure-skip-tls-verify: true}');
    expect(() => parseUntrustedKubeconfig(hidden)).toThrow(/cluster "on" of context "no" has __proto__/);
  });

  it('does not quote the kubeconfig in errors, because keys are in it', () => {
    const broken = `users: [{name: u, user: {token: very-secret}}]\nclusters: [\n`;
    expect(() => parseUntrustedKubeconfig(broken)).toThrow(/^the kubeconfig is not a kubeconfig: [^\n]*$/);
    expect(() => parseUntrustedKubeconfig(broken)).not.toThrow(/very-secret/);
  });

  it('refuses forbidden fields outside of the current context too', () => {
    const users = [
      { name: 'u', user: {} },
      { name: 'other', user: { exec: { command: 'true' } } },
    ];
    expect(() => parseUntrustedKubeconfig(config({}, {}, { users }))).toThrow('user "other" has exec');
  });
});

describe('rewriteUntrustedKubeconfig', () => {
  // js-yaml 4, in client-node, merges `<<` as kubectl's parser does.
  const asKubectlReads = (text: string) => {
    const read = new KubeConfig();
    read.loadFromString(text);
    return { users: read.users, clusters: read.clusters, contexts: read.contexts, current: read.currentContext };
  };
  const whole = (parts: { top?: string; server?: string; users?: string; contexts?: string }) => `${parts.top ?? ''}
clusters: [{name: c, cluster: {${parts.server ?? 'server: "https://host:6443"'}}}]
users: ${parts.users ?? '[{name: t, user: {token: real}}]'}
contexts: ${parts.contexts ?? '[{name: ctx, context: {cluster: c, user: t}}]'}
current-context: ctx
`;

  const attacks: [refused: string, yaml: string][] = [
    ['user "t" of context "ctx" has <<', whole({ users: '[{name: t, <<: {user: {exec: {command: id}}}}]' })],
    ['user "t" of context "ctx" has <<', whole({ users: '[{name: t, user: {<<: {tokenFile: /etc/shadow}}}]' })],
    ['user "t" of context "ctx" has USER', whole({ users: '[{name: t, USER: {exec: {command: id}}}]' })],
    ['cluster "c" of context "ctx" has <<', whole({ server: 'server: "https://host", <<: {proxy-url: "http://p"}' })],
    ['context "ctx" has <<', whole({ contexts: '[{name: ctx, <<: {context: {user: x}}, context: {cluster: c}}]' })],
    ['context "ctx" has namespaces', whole({ contexts: '[{name: ctx, context: {cluster: c, namespaces: x}}]' })],
    ['it has <<', whole({ top: '<<: {users: [{name: t, user: {exec: {command: id}}}]}' })],
    ['it has Users', whole({ top: 'Users: [{name: t, user: {exec: {command: id}}}]' })],
    ['field preferences has exec', whole({ top: 'preferences: {exec: {}}' })],
    ['it has an extension that has <<', whole({ top: 'extensions: [{name: a, <<: {extension: {}}}]' })],
    ['user "t" of context "ctx" has a token that is not text', whole({ users: '[{name: t, user: {token: 1}}]' })],
    ['user "undefined" has no fields', whole({ users: '[{name: t, user: {}}, [exec]]' })],
  ];
  it.each(attacks)('refuses %s', (refused, yaml) => {
    for (const read of [rewriteUntrustedKubeconfig, parseUntrustedKubeconfig, parseAdministratorsKubeconfig])
      expect(() => read(yaml)).toThrow(`the kubeconfig is refused: ${refused}`);
  });

  it('writes all checked contexts, and nothing else of the input', () => {
    const text = JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      preferences: {},
      extensions: [{ name: 'note', extension: { '<<': { users: 'note-in-extension' } } }],
      clusters: [
        { name: 'c', cluster: { server: 'https://host:6443', 'certificate-authority-data': base64('CA') } },
        {
          name: 'by-name',
          cluster: { server: 'https://name', 'tls-server-name': 'api', 'insecure-skip-tls-verify': false },
        },
      ],
      users: [
        {
          name: 'u',
          user: { token: '0b1', as: 'ada', 'as-uid': '7', 'as-groups': ['ops'], 'as-user-extra': { why: ['x'] } },
        },
      ],
      contexts: [
        { name: 'ctx', context: { cluster: 'c', user: 'u', namespace: 'shop' } },
        { name: 'other', context: { cluster: 'by-name', user: 'u' } },
        { name: 'dangling', context: { cluster: 'gone', user: 'u' } },
      ],
      'current-context': 'ctx',
    });
    const rewritten = rewriteUntrustedKubeconfig(text);
    expect(rewritten).not.toMatch(/note-in-extension|<<|dangling/);
    for (const context of ['ctx', 'other'])
      expect(parseUntrustedKubeconfig(rewritten, undefined, context)).toEqual(
        parseUntrustedKubeconfig(text, undefined, context),
      );
    expect(asKubectlReads(rewritten)).toMatchObject({
      users: [{ name: 'u', token: '0b1' }],
      contexts: [{ name: 'ctx', namespace: 'shop' }, { name: 'other' }],
      current: 'ctx',
    });
  });
});

describe('the proxy of a connection', () => {
  const named = config({ 'proxy-url': 'http://u:p@named:1' }, {});
  const near = config({ 'proxy-url': 'http://named:1', server: 'https://127.0.0.1:6443' }, {});
  afterEach(() => vi.unstubAllEnvs());

  const proxy = (connection: Connection) => proxyTo(connection.server, connection.proxy);

  it("is proxy-url of an own or administrator's kubeconfig, whatever NO_PROXY says, else the environment's", () => {
    vi.stubEnv('HTTPS_PROXY', 'http://environment:2');
    vi.stubEnv('https_proxy', '');
    for (const parse of [parseOwnKubeconfig, (text: string) => parseAdministratorsKubeconfig(text)]) {
      expect(proxy(parse(config({}, {})))?.name).toBe('http://environment:2');
      expect(proxy(parse(named))).toMatchObject({ name: 'http://named:1', authorization: 'Basic dTpw' });
      expect(proxy(parse(near))?.name).toBe('http://named:1');
      expect(proxy(parse(config({ server: 'https://127.0.0.1:6443' }, {})))).toBeUndefined();
    }
    vi.stubEnv('NO_PROXY', 'host,named');
    expect(proxy(parseOwnKubeconfig(config({}, {})))).toBeUndefined();
    expect(proxy(parseOwnKubeconfig(named))?.name).toBe('http://named:1');
    expect(proxy(parseAdministratorsKubeconfig(selfContainedKubeconfig(named, 'seed.yaml')))?.name).toBe(
      'http://named:1',
    );
  });

  it("is only the environment's for an untrusted kubeconfig", () => {
    vi.stubEnv('HTTPS_PROXY', 'http://environment:2');
    vi.stubEnv('https_proxy', '');
    expect(proxy(parseUntrustedKubeconfig(config({}, {})))?.name).toBe('http://environment:2');
    expect(() => parseUntrustedKubeconfig(named)).toThrow('proxy-url');
  });

  it('is none when the caller passes false', () => {
    vi.stubEnv('HTTPS_PROXY', 'http://environment:2');
    expect(proxyTo('https://host:6443', false)).toBeUndefined();
  });
});

describe('an own kubeconfig', () => {
  const file = (name: string, text: string) => {
    mkdirSync(join(directory, name, '..'), { recursive: true });
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };

  it('merges all files of KUBECONFIG: the first entry of a name wins, paths are relative to their file', () => {
    file('two/ca.crt', 'THE OTHER CA');
    const first = file('one.yaml', 'current-context: ctx\nusers: [{name: u, user: {token: first}}]');
    const second = file('two/config', config({ 'certificate-authority': 'ca.crt' }, { token: 'second' }));
    const empty = file('empty', '');
    const KUBECONFIG = [empty, join(directory, 'missing'), first, second].join(':');
    expect(loadOwnKubeconfig(undefined, { KUBECONFIG })).toMatchObject({
      server: 'https://host:6443',
      ca: 'THE OTHER CA',
      token: 'first',
    });
    expect(() => loadOwnKubeconfig(undefined, { KUBECONFIG: join(directory, 'missing') })).toThrow('missing');
  });

  it('can be stored in a Secret when files are its only references', () => {
    const named = config({ 'certificate-authority': 'ca.crt' }, { token: 't' });
    const text = selfContainedKubeconfig(named, join(directory, 'seed.yaml'));
    expect(parseUntrustedKubeconfig(text)).toMatchObject({ ca: 'CA FILE', token: 't' });
    expect(() => selfContainedKubeconfig(config({}, { exec: { command: 'true' } }), 'seed.yaml')).toThrow(
      'seed.yaml is refused: user "u" of context "ctx" has exec',
    );
    const whole = config({ 'certificate-authority-data': base64('CA') }, { token: 't' });
    expect(parseUntrustedKubeconfig(selfContainedKubeconfig(whole, 'seed.yaml'))).toEqual(
      parseUntrustedKubeconfig(whole),
    );
  });
});
