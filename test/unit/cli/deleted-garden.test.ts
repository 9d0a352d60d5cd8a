import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dump, load } from 'js-yaml';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Options } from '../../../operator/cli/context.ts';
import { kubectlWords } from '../../../operator/cli/kubectl-words.ts';
import { main } from '../../../operator/cli/main.ts';
import { createTerminal } from '../../../operator/cli/terminal.ts';
import { chooseRanges } from '../../../operator/garden/host/ranges.ts';
import { StateDirectory } from '../../../operator/garden/state/state.ts';
import { ToolCache } from '../../../operator/garden/toolchain/cache.ts';
import type { KubeconfigDocument } from '../../../operator/kube/kubeconfig-files.ts';
import { writeKubeconfigText } from '../../../operator/pki/kubeconfig.ts';

let home: string;
let directory: StateDirectory;
let personal: string;
let server: Server;
let asked: number;
const ranges = chooseRanges('000abc', [])!;

/** A stopped garden, and a person's kubeconfig whose current context leads to another cluster, which answers. */
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'coppice-deleted-'));
  directory = new StateDirectory(home);
  await directory.make();
  const ports = { apiserver: 1, etcd: 2, etcdPeer: 3 };
  await directory.write({ id: directory.id, createdAt: '', ports, ranges, seed: 'local' });
  const admin = writeKubeconfigText({
    server: 'https://127.0.0.1:1',
    ca: 'GARDEN',
    token: 't',
    name: 'coppice',
    user: 'admin',
  });
  await writeFile(directory.kubeconfigFile('admin'), admin);
  asked = 0;
  server = createServer((_, response) => {
    asked++;
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ metadata: { resourceVersion: '1' }, items: [] }));
  }).listen(0, '127.0.0.1');
  await vi.waitUntil(() => server.listening);
  personal = join(home, 'config');
});
afterEach(async () => {
  vi.restoreAllMocks();
  server.closeAllConnections();
  server.close();
  await rm(home, { recursive: true, force: true });
});

async function coppice(...argv: string[]) {
  let [out, err] = ['', ''];
  const env = { COPPICE_HOME: home, KUBECONFIG: personal, HOME: home, PATH: '' };
  const terminal = createTerminal({
    out: { write: (text) => (out += text) },
    err: { write: (text) => (err += text) },
    env,
  });
  const code = await main(argv, terminal, env, new AbortController().signal);
  return { code, out, err };
}

const plugin = (args: string[], env: object[] = []) => ({
  exec: {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: 'coppice',
    args: ['kubeconfig', ...args, '--credential'],
    env,
  },
});

function merged(entries: Record<string, { cluster?: object; user?: object }>, current: string): KubeconfigDocument {
  const names = Object.keys(entries);
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: names.map((name) => ({ name, cluster: { server: 'https://elsewhere', ...entries[name]!.cluster } })),
    users: names.map((name) => ({ name, user: { token: 't', ...entries[name]!.user } })),
    contexts: names.map((name) => ({ name, context: { cluster: name, user: name } })),
    'current-context': current,
  };
}

const everything = () => {
  const other = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return merged(
    {
      other: { cluster: { server: other } },
      'coppice/garden': { user: plugin(['--garden'], [{ name: 'COPPICE_HOME', value: home }]) },
      'coppice/default/demo': { user: plugin(['demo', `--kubeconfig=${directory.kubeconfigFile('admin')}`]) },
      'coppice/default/by-secret': {
        cluster: { server: `https://${ranges.services.replace('.0/', '.9/').split('/')[0]}` },
      },
      'coppice/default/garden-once': {
        cluster: { 'certificate-authority-data': Buffer.from('GARDEN').toString('base64') },
      },
      'coppice/shop/elsewhere': { user: plugin(['elsewhere', '--kubeconfig=/home/jane/prod.yaml']) },
      'coppice/shop/other-home': { user: plugin(['--garden'], [{ name: 'COPPICE_HOME', value: '/srv/other' }]) },
      'coppice/shop/usual-home': { user: plugin(['--garden']) },
      'my-copy': { user: plugin(['demo', `--kubeconfig=${directory.kubeconfigFile('admin')}`]) },
    },
    'coppice/default/demo',
  );
};

describe('coppice down', () => {
  it("removes its own contexts from the person's kubeconfig, and no others", async () => {
    await writeFile(personal, dump(everything()));
    const { code, err } = await coppice('down', '--leave-clouds');
    expect(code).toBe(0);
    const left = load(await readFile(personal, 'utf8')) as KubeconfigDocument;
    const kept = ['other', 'coppice/shop/elsewhere', 'coppice/shop/other-home', 'coppice/shop/usual-home', 'my-copy'];
    for (const list of ['contexts', 'clusters', 'users'] as const)
      expect(left[list]!.map(({ name }) => name)).toEqual(kept);
    expect(left['current-context']).toBe('');
    expect(err).toContain(
      `Removed "coppice/garden", "coppice/default/demo", "coppice/default/by-secret", "coppice/default/garden-once" from ${personal}, which has no current context now.`,
    );
  });

  it('succeeds when that kubeconfig cannot be changed, and reports it', async () => {
    await writeFile(personal, 'clusters: [');
    const { code, err } = await coppice('down', '--leave-clouds');
    expect(code).toBe(0);
    expect(err).toContain(`The garden's contexts are still in ${personal}: `);
  });

  it('makes later commands refuse, unless the person names an API server', async () => {
    await writeFile(personal, dump({ ...everything(), 'current-context': 'other' }));
    await coppice('down', '--leave-clouds');
    for (const line of [['get'], ['delete', 'demo'], ['scale', 'demo', '--nodes', '3']])
      expect(await coppice(...line)).toMatchObject({
        code: 3,
        err: 'error: the garden of this machine was deleted ("coppice down"); run "coppice up", or name another API server with --kubeconfig or --context; "--context other" once makes it the default again\n',
      });
    expect(asked).toBe(0);
    expect((await coppice('get', '--kubeconfig', personal)).code).toBe(0);
    expect(asked).toBeGreaterThan(0);
    expect((await coppice('get')).code).toBe(3);
  });

  it('lets later commands use the current context once the person has named it', async () => {
    await writeFile(personal, dump({ ...everything(), 'current-context': 'other' }));
    await coppice('down', '--leave-clouds');
    // Another context than the current one says nothing of what commands without a name mean.
    await coppice('get', '--context', 'coppice/shop/elsewhere', '--timeout', '1s');
    expect((await coppice('get')).code).toBe(3);
    expect((await coppice('get', '--context', 'other')).code).toBe(0);
    expect((await coppice('get')).code).toBe(0);
  });

  it('lets later commands use a context that the person has switched to since', async () => {
    await writeFile(personal, dump(everything()));
    await coppice('down', '--leave-clouds');
    expect((await coppice('get')).code).toBe(3);
    await writeFile(personal, dump({ ...everything(), 'current-context': 'other' }));
    expect((await coppice('get')).code).toBe(0);
    // It was a choice, and no state of the file that could come back.
    await writeFile(personal, dump({ ...everything(), 'current-context': '' }));
    expect((await coppice('get')).err).toContain('has no current context; choose one with --context: other');
  });

  it('makes later commands ask for a choice when the record lacks the context', async () => {
    await writeFile(personal, dump({ ...everything(), 'current-context': 'other' }));
    await rm(directory.root, { recursive: true });
    await writeFile(join(home, 'garden-deleted'), '"coppice down" deleted the garden of this machine.\n');
    expect((await coppice('get')).code).toBe(3);
    expect((await coppice('get', '--context', 'other')).code).toBe(0);
    expect((await coppice('get')).code).toBe(0);
  });

  it('says that there was no garden, and records no deletion', async () => {
    await rm(directory.root, { recursive: true });
    await writeFile(personal, dump({ ...everything(), 'current-context': 'other' }));
    expect((await coppice('down')).out).toBe('There is no garden here; "coppice up" creates one.\n');
    expect((await coppice('get')).code).toBe(0);
  });

  it('lists what remains on the machine, and removes empty backup folders', async () => {
    await mkdir(join(home, 'clouds', 'backups', 'local', 'bucket'), { recursive: true });
    const tools = join(home, 'tools');
    await new ToolCache(tools).noteInstalled(['runc', 'iptables']);
    const first = await coppice('down', '--leave-clouds');
    expect(first.err).toContain(`Its tools stay in ${tools} for the next garden; "rm -r ${tools}" removes them.\n`);
    expect(first.err).toContain('Packages that apt-get installed for it stay, too: iptables, runc.\n');
    expect(first.err).not.toContain('Backups');
    expect(existsSync(join(home, 'clouds'))).toBe(false);

    await directory.make();
    await mkdir(join(home, 'clouds', 'backups', 'local', 'empty'), { recursive: true });
    await writeFile(join(home, 'clouds', 'backups', 'local', 'snapshot'), '');
    expect((await coppice('down', '--leave-clouds')).err).toContain(
      `Backups of its clusters stay in ${home}/clouds/backups.`,
    );
    expect(await readdir(join(home, 'clouds', 'backups', 'local'))).toEqual(['snapshot']);
  });
});

describe('a hint for kubectl', () => {
  const words = (values: Record<string, string> = {}, env: Record<string, string> = {}) =>
    kubectlWords({
      options: new Options(values),
      env: { COPPICE_HOME: home, KUBECONFIG: personal, HOME: home, ...env },
    });
  const admin = () => directory.kubeconfigFile('admin');

  it('selects the API server of the command', async () => {
    await writeFile(personal, dump(merged({ other: {} }, 'other')));
    expect(await words()).toBe(`kubectl --kubeconfig ${admin()}`);
    await writeFile(personal, dump(everything()));
    expect(await words()).toBe('kubectl --context coppice/garden');
    expect(await words({ kubeconfig: 'x.yaml' })).toBe(`kubectl --kubeconfig ${join(process.cwd(), 'x.yaml')}`);
    expect(await words({}, { COPPICE_KUBECONFIG: '/a b' })).toBe("kubectl --kubeconfig '/a b'");
    await rm(directory.root, { recursive: true });
    expect(await words()).toBe('kubectl');
    expect(await words({ context: 'prod' })).toBe('kubectl --context prod');
  });

  it('has the namespace of the object to delete', async () => {
    await writeFile(personal, dump(everything()));
    expect((await coppice('delete', 'burstpolicy', 'peak', '-n', 'shop')).err).toContain(
      'run "kubectl --context coppice/garden delete burstpolicy peak -n shop"',
    );
    expect((await coppice('delete', 'seed', 'far', '-n', 'shop')).err).toContain('delete seed far"');
    expect((await coppice('delete', 'wc', 'demo', '-n', 'shop')).err).toContain('run "coppice delete demo -n shop"');
  });
});
