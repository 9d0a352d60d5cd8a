import { X509Certificate } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { gardenDirectory } from '../../../operator/cli/garden.ts';
import { main } from '../../../operator/cli/main.ts';
import { createTerminal } from '../../../operator/cli/terminal.ts';
import { gardenBindings } from '../../../operator/garden/control-plane/administrators.ts';
import { ensureCertificates } from '../../../operator/garden/control-plane/certificates.ts';
import { chooseRanges } from '../../../operator/garden/host/ranges.ts';
import { parseUntrustedKubeconfig } from '../../../operator/kube/kubeconfig.ts';
import { isPair, issuedBy } from '../../../operator/pki/certificates.ts';

let folder: string;
let env: Record<string, string>;
let ca: string;
const now = new Date();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coppice-garden-kubeconfig-'));
  env = { COPPICE_HOME: join(folder, 'garden'), KUBECONFIG: join(folder, 'own.yaml'), HOME: folder };
  const directory = gardenDirectory(env);
  await directory.make();
  await ensureCertificates(directory, { ranges: chooseRanges('abc', [])!, apiserverPort: 21_000, now });
  ca = await readFile(directory.pki('ca.crt'), 'utf8');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function coppice(...args: string[]) {
  const said = { out: '', err: '' };
  const stream = (name: 'out' | 'err') => ({
    isTTY: false,
    columns: 80,
    write(text: string) {
      said[name] += text;
    },
  });
  const terminal = createTerminal({ out: stream('out'), err: stream('err'), env });
  const code = await main(['kubeconfig', '--garden', ...args], terminal, env, new AbortController().signal);
  return { ...said, code };
}

/** For how many minutes it lasts, of a certificate that the garden's API server takes for one of its administrators. */
function minutesOf(cert: string): number {
  const { subject, validToDate } = new X509Certificate(cert);
  const binding = gardenBindings().find(({ roleRef }) => roleRef.name === 'cluster-admin')!;
  const [group] = binding.subjects as { name: string }[];
  expect(subject.split('\n').sort()).toEqual(['CN=coppice:admin', `O=${group!.name}`]);
  expect(issuedBy(cert, ca)).toBe(true);
  return Math.round((+validToDate - +now) / 60_000);
}

it("has an administrator's certificate for an hour, or for --expires-in", async () => {
  const { out, err, code } = await coppice();
  expect([code, err]).toEqual([0, '']);
  const { server, cert = '', key = '', ca: trusted } = parseUntrustedKubeconfig(out);
  expect([server, trusted, isPair({ cert, key })]).toEqual(['https://127.0.0.1:21000', ca, true]);
  expect(minutesOf(cert)).toBe(60);
  const longer = parseUntrustedKubeconfig((await coppice('--expires-in', '2h')).out);
  expect(minutesOf(longer.cert!)).toBe(120);
  expect(await coppice('--expires-in', '25h')).toMatchObject({ code: 2, out: '' });
});

it("calls coppice for certificates of this garden with --exec, and in the person's own file", async () => {
  const said = await coppice('--exec', '--expires-in', '2h');
  expect(await coppice('--merge', '--expires-in', '2h')).toMatchObject({ code: 0, err: '' });
  for (const text of [said.out, await readFile(env.KUBECONFIG!, 'utf8')]) {
    expect(text).not.toContain('client-key-data');
    const { users } = load(text) as { users: { user: { exec: object } }[] };
    expect(users[0]!.user.exec).toMatchObject({
      args: ['kubeconfig', '--garden', '--credential', '--expires-in=7200s'],
      env: [{ name: 'COPPICE_HOME', value: env.COPPICE_HOME }],
    });
  }
  const { status } = JSON.parse((await coppice('--credential', '--expires-in=7200s')).out);
  expect(minutesOf(status.clientCertificateData)).toBe(120);
  expect(Date.parse(status.expirationTimestamp)).toBe(+new X509Certificate(status.clientCertificateData).validToDate);
  expect(isPair({ cert: status.clientCertificateData, key: status.clientKeyData })).toBe(true);
});

it('is refused without a garden, and with options of clusters', async () => {
  expect(await coppice('--viewer')).toMatchObject({ code: 2, out: '' });
  expect(await coppice('--secret')).toMatchObject({ code: 2, out: '' });
  env = { ...env, COPPICE_HOME: join(folder, 'none') };
  expect(await coppice()).toEqual({ code: 3, out: '', err: 'error: there is no garden here; run "coppice up"\n' });
});
