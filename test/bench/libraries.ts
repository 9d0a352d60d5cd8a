import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/**
 * The figures of docs/decisions/0040: what libraries cost beside ours, in CPU time of a process of its own, the least of five.
 * `npx node test/bench/libraries.ts [NAME...]`. Those that are not taken come by `npm install --no-save commander@15.1.0 yaml@2.9.1`.
 */
const ROOT = new URL('../../', import.meta.url);
const cpuMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

/** Not by name in an import, since some are not installed. */
const load = (name: string): Promise<any> => import(name.endsWith('.ts') ? new URL(name, ROOT).href : name);

/** Loading alone: the time is taken around it. */
async function loaded(name: string): Promise<number> {
  await load(name);
  return 0;
}

/** CPU ms of so many runs, each. */
async function each(times: number, run: (index: number) => unknown): Promise<number> {
  for (let index = 0; index < Math.min(times, 50); index++) await run(index);
  const before = cpuMs();
  for (let index = 0; index < times; index++) await run(index);
  return (cpuMs() - before) / times;
}

const crds = (): string[] => {
  const folder = fileURLToPath(new URL('charts/coppice/crds/', ROOT));
  return readdirSync(folder).map((file) => readFileSync(folder + file, 'utf8'));
};

async function parsing(
  name: string,
  parse: (library: Record<string, (text: string) => unknown>, text: string) => unknown,
) {
  const texts = crds();
  const library = await load(name);
  const before = cpuMs();
  for (const text of texts) parse(library, text);
  return cpuMs() - before;
}

const SERVER = {
  commonName: 'kube-apiserver',
  dnsNames: ['kubernetes', 'kubernetes.default'],
  ipAddresses: ['10.0.0.1', '127.0.0.1'],
};

async function issueByLibrary(): Promise<number> {
  await load('operator/pki/reflect.ts');
  const x509 = await load('@peculiar/x509');
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const newKeys = () => crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const ca = await newKeys();
  const life = { notBefore: new Date(), notAfter: new Date(Date.now() + 1e10) };
  const identifier = await x509.AuthorityKeyIdentifierExtension.create(ca.publicKey);
  return each(100, async () => {
    const { publicKey } = await newKeys();
    const names = [
      ...SERVER.dnsNames.map((value) => ({ type: 'dns', value })),
      ...SERVER.ipAddresses.map((value) => ({ type: 'ip', value })),
    ];
    const certificate = await x509.X509CertificateGenerator.create({
      ...life,
      serialNumber: '02ab',
      subject: `CN=${SERVER.commonName}`,
      issuer: 'CN=ca',
      signingKey: ca.privateKey,
      publicKey,
      signingAlgorithm: algorithm,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension(['1.3.6.1.5.5.7.3.1']),
        identifier,
        new x509.SubjectAlternativeNameExtension(names),
      ],
    });
    return certificate.toString('pem');
  });
}

/** CPU ms, of loading what is measured where the name says so. */
const MEASURED: Record<string, () => Promise<number>> = {
  'address range': async () => {
    const { addressRange } = await load('operator/api/address-range.ts');
    return each(50_000, (index) => addressRange(`10.${index % 256}.0.0/16`));
  },
  'next and last time of a schedule': async () => {
    const { lastTime, nextTime, parseCron } = await load('operator/api/cron.ts');
    const [cron, now] = [parseCron('0 20 * * 1-5'), new Date('2026-11-20T20:00:00Z')];
    return each(1000, () => [nextTime(cron, 'Europe/Berlin', now), lastTime(cron, 'Europe/Berlin', now)]);
  },
  'load prom-client, whole': () => loaded('prom-client'),
  'load prom-client, as metrics.ts does': () => loaded('operator/kube/metrics.ts'),
  'parse all CRDs by js-yaml': () => parsing('js-yaml', (library, text) => library.loadAll!(text)),
  'parse all CRDs by yaml': () =>
    parsing('yaml', (library, text) =>
      (library.parseAllDocuments!(text) as { toJS(): unknown }[]).map((one) => one.toJS()),
    ),
  'issue a certificate': async () => {
    const { createCA, issue } = await load('operator/pki/certificates.ts');
    const ca = await createCA({ commonName: 'ca', days: 3650 });
    return each(100, () => issue(ca, { ...SERVER, usages: ['server'], days: 365 }));
  },
  'issue a certificate by @peculiar/x509': issueByLibrary,
  'load parse.ts': () => loaded('operator/cli/parse.ts'),
  'load commander': () => loaded('commander'),
  'load our client, informer, queue, lease': async () => {
    for (const file of ['client', 'informer', 'workqueue', 'leader']) await load(`operator/kube/${file}.ts`);
    return 0;
  },
  'load @kubernetes/client-node': () => loaded('@kubernetes/client-node'),
};

async function measureOne(name: string): Promise<void> {
  const [before, memory] = [cpuMs(), process.memoryUsage.rss()];
  const found = await MEASURED[name]!();
  const ms = name.startsWith('load') ? cpuMs() - before : found;
  process.stdout.write(JSON.stringify({ ms, mib: (process.memoryUsage.rss() - memory) / 2 ** 20 }));
}

/** As bin/coppice has it: what is compiled once is not compiled again. */
const env = { ...process.env, NODE_COMPILE_CACHE: fileURLToPath(new URL('node_modules/.cache/coppice', ROOT)) };
const [flag, ...names] = process.argv.slice(2);
if (flag === '--one') await measureOne(names.join(' '));
else {
  for (const name of flag ? [flag, ...names] : Object.keys(MEASURED)) {
    const runs = Array.from({ length: 5 }, () => {
      try {
        const output = execFileSync(process.execPath, [fileURLToPath(import.meta.url), '--one', name], {
          stdio: ['ignore', 'pipe', 'ignore'],
          encoding: 'utf8',
          env,
        });
        return [JSON.parse(output) as { ms: number; mib: number }];
      } catch {
        return [];
      }
    }).flat();
    const least = (key: 'ms' | 'mib') => Math.min(...runs.map((run) => run[key]));
    const told =
      runs.length === 0
        ? 'not installed'
        : `${least('ms').toPrecision(3)} ms of CPU, ${least('mib').toFixed(0)} MiB more`;
    process.stdout.write(`${name}: ${told}\n`);
  }
}
