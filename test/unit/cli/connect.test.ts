import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { connect } from '../../../operator/cli/connect.ts';
import { Options } from '../../../operator/cli/context.ts';
import { gardenKubeconfigFile } from '../../../operator/cli/garden.ts';
import { environmentProxy } from '../../../operator/kube/http/http-proxy.ts';
import { writeKubeconfigText } from '../../../operator/pki/kubeconfig.ts';

let home: string;
let file: string;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'coppice-connect-'));
  file = join(home, 'kubeconfig.yaml');
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(home, { recursive: true, force: true });
});

/** The proxy to a cluster of a garden once a client was made by a kubeconfig that leads to `server`. */
async function proxyAfter(server: string, at: string, options: object, env: object): Promise<string | undefined> {
  for (const name of ['HTTP_PROXY', 'http_proxy', 'https_proxy', 'NO_PROXY', 'no_proxy']) vi.stubEnv(name, undefined);
  vi.stubEnv('HTTPS_PROXY', 'http://proxy.example:3128');
  await mkdir(dirname(at), { recursive: true });
  await writeFile(at, writeKubeconfigText({ server, ca: '', token: 't', name: 'garden', user: 'admin' }));
  const { client } = await connect({ options: new Options({ ...options }), env: { HOME: home, ...env } });
  await client.close();
  return environmentProxy('https://10.161.0.1:6443')?.name;
}

it.each(['https://127.0.0.1:6443', 'https://localhost:6443'])(
  'clusters of a garden at %s are reached without the proxy, however its kubeconfig was named',
  async (server) => {
    const env = { COPPICE_HOME: home };
    expect(await proxyAfter(server, file, { kubeconfig: file }, {})).toBeUndefined();
    expect(await proxyAfter(server, file, {}, { COPPICE_KUBECONFIG: file })).toBeUndefined();
    expect(await proxyAfter(server, join(home, '.kube', 'config'), {}, env)).toBeUndefined();
    expect(await proxyAfter(server, gardenKubeconfigFile(env), {}, env)).toBeUndefined();
  },
);

it('a garden at the address of an earlier garden is told apart by its authority', async () => {
  const authority = async (ca: string) => {
    const file = join(home, `${ca}.yaml`);
    await writeFile(
      file,
      writeKubeconfigText({ server: 'https://garden.example.com', ca, token: 't', name: 'g', user: 'u' }),
    );
    const { client, authority } = await connect({ options: new Options({ kubeconfig: file }), env: {} });
    await client.close();
    return authority;
  };
  expect(await authority('ONE')).not.toBe(await authority('TWO'));
});

it('a garden on another machine does not bypass the proxy for its clusters', async () => {
  const server = 'https://garden.example.com';
  expect(await proxyAfter(server, file, { kubeconfig: file }, {})).toBe('http://proxy.example:3128');
});
