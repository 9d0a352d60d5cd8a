import { createServer, type Server } from 'node:http';
import { createServer as createTLSServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { setDefaultCACertificates } from 'node:tls';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { createCA, issue } from '../../../operator/pki/certificates.ts';
import { contentOf } from '../../../providers/bucket-objects.ts';
import { context as azureContext } from './azure/fake-azure.ts';
import { context as googleContext } from './gcp/fixtures.ts';

const HOSTS = [
  'login.microsoftonline.com',
  'management.azure.com',
  'oauth2.googleapis.com',
  'cloudresourcemanager.googleapis.com',
  'storage.googleapis.com',
  'sts.eu-central-1.amazonaws.com',
  'route53.amazonaws.com',
  'pricing.us-east-1.amazonaws.com',
];

/** Everything behind the proxy: answers JSON that has what any of the clouds would be asked for here. */
let cloud: Server;
let proxy: Server;
/** Its URL. */
let way: string;
/** What was asked of the proxy: CONNECT and host, or a URL. */
const tunnels: string[] = [];
const versions = new Set<string>();
const XML = `<GetCallerIdentityResponse><GetCallerIdentityResult><Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`;

const listening = (server: Server) =>
  new Promise<number>((resolve) =>
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)),
  );

beforeAll(async () => {
  const ca = await createCA({ commonName: 'clouds', days: 1 });
  const { cert, key } = await issue(ca, { commonName: 'cloud', dnsNames: HOSTS, usages: ['server'], days: 1 });
  setDefaultCACertificates([ca.cert]);
  cloud = createTLSServer({ cert, key, ALPNProtocols: ['h2', 'http/1.1'] }, (request, response) => {
    versions.add(request.httpVersion);
    request.resume();
    if (request.headers.host?.startsWith('sts.')) response.end(XML);
    else response.end(JSON.stringify({ access_token: 'a-token', expires_in: 3600, state: 'Enabled', items: [] }));
  });
  const behind = await listening(cloud);
  proxy = createServer();
  proxy.on('connect', ({ url }, socket) => {
    tunnels.push(`CONNECT ${url}`);
    const onward = connect(behind, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      onward.pipe(socket).pipe(onward);
    });
    for (const end of [onward, socket]) end.on('error', () => {});
  });
  const port = await listening(proxy);
  way = `http://127.0.0.1:${port}`;
  vi.stubEnv('HTTPS_PROXY', way);
  // Somebody's way to the internet, which the fakes on this machine must not be asked by.
  vi.stubEnv('HTTP_PROXY', `http://127.0.0.1:${port}`);
});

afterAll(() => {
  vi.unstubAllEnvs();
  for (const server of [proxy, cloud]) {
    server?.close();
    server?.closeAllConnections();
  }
});

beforeEach(() => {
  vi.resetModules();
  tunnels.length = 0;
});

const { signal } = new AbortController();
const aws = {
  region: 'eu-central-1',
  key: { accessKeyID: 'AKIDEXAMPLE', secretAccessKey: 'hush' },
  now: () => new Date(),
  signal,
};

const ASKED: [what: string, hosts: string[], ask: () => Promise<unknown>][] = [
  [
    'AWS',
    ['sts.eu-central-1.amazonaws.com'],
    async () => (await import('../../../providers/aws/api.ts')).query(aws, 'sts', 'GetCallerIdentity'),
  ],
  [
    'Google',
    ['oauth2.googleapis.com', 'cloudresourcemanager.googleapis.com'],
    async () => {
      const { GOOGLE } = await import('../../../providers/gcp/google-api.ts');
      return (await import('../../../providers/gcp/account.ts')).checkAccount(googleContext(), GOOGLE);
    },
  ],
  [
    'Azure',
    ['login.microsoftonline.com', 'management.azure.com'],
    async () => {
      const { PUBLIC_CLOUD } = await import('../../../providers/azure/arm.ts');
      return (await import('../../../providers/azure/account.ts')).checkAccount(azureContext(), PUBLIC_CLOUD);
    },
  ],
  [
    'what is streamed into a bucket',
    ['storage.googleapis.com'],
    async () => {
      const { transfer } = await import('../../../providers/bucket-transfer.ts');
      const url = 'https://storage.googleapis.com/upload';
      return transfer({ method: 'PUT', url, headers: {}, content: contentOf('snapshot'), what: 'bucket', signal });
    },
  ],
  [
    'a list of prices',
    ['pricing.us-east-1.amazonaws.com'],
    async () => {
      const { request } = await import('../../../profiles/renew/price-list.ts');
      const { body } = await request(new URL('https://pricing.us-east-1.amazonaws.com/offers'), signal);
      await body.cancel();
    },
  ],
];

describe('a proxy to the clouds', () => {
  it.each(ASKED.slice(0, 4))(
    'that is unusable is named without its password in errors of %s',
    async (_what, _hosts, ask) => {
      vi.stubEnv('HTTPS_PROXY', 'http://ada:hush@127.0.0.1:1');
      await expect(ask()).rejects.toThrow(
        /cannot be reached.*: proxy http:\/\/127\.0\.0\.1:1 cannot be used: connect ECONNREFUSED 127\.0\.0\.1:1$/,
      );
      vi.stubEnv('HTTPS_PROXY', way);
    },
  );

  it.each(ASKED)('forwards requests of %s', async (_what, hosts, ask) => {
    await ask();
    expect([...new Set(tunnels)].sort()).toEqual(hosts.map((host) => `CONNECT ${host}:443`).sort());
    expect([...versions]).toEqual(['1.1']);
  });

  it('is bypassed by NO_PROXY, also by a range, and for this machine', async () => {
    vi.stubEnv('NO_PROXY', '.amazonaws.com,192.0.2.0/24');
    const { query } = await import('../../../providers/aws/api.ts');
    // No test may reach AWS: that nobody is there is all that can be seen of the direct way.
    const alone = () => ({ ...aws, signal: AbortSignal.timeout(50) });
    await expect(query(alone(), 'sts', 'GetCallerIdentity')).rejects.toThrow();
    const inRange = { ...alone(), endpoint: () => 'https://192.0.2.1' };
    await expect(query(inRange, 'sts', 'GetCallerIdentity')).rejects.toThrow();
    const here = createServer((_request, response) => response.end(XML));
    const endpoint = `http://127.0.0.1:${await listening(here)}`;
    await query({ ...aws, endpoint: () => endpoint }, 'sts', 'GetCallerIdentity');
    here.close();
    here.closeAllConnections();
    expect(tunnels).toEqual([]);
    vi.stubEnv('NO_PROXY', '');
  });
});
