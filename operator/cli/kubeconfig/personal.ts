import { createHash } from 'node:crypto';
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { dump } from 'js-yaml';
import { KUBECONFIG_SECONDS } from '../../api/kubeconfig-request.ts';
import { writeKubeconfigText } from '../../pki/kubeconfig.ts';
import { type CliConnection, connect } from '../connect.ts';
import type { Context, Options } from '../context.ts';
import { UsageError } from '../errors.ts';
import { pathOfCoppice } from '../invocation.ts';
import { askForCertificate, type Granted, type WantedKubeconfig } from './ask.ts';

/** Least remaining lifetime of a cached certificate: a request must end before the certificate does. */
const LEAST_LEFT_MS = 60_000;

/** Cache file of the certificate between calls of kubectl, in the person's own cache directory. */
function keptFile(garden: string, wanted: WantedKubeconfig, env: Record<string, string | undefined>): string {
  const { namespace, name, role, seconds } = wanted;
  const print = createHash('sha256')
    .update(JSON.stringify([garden, namespace, name, role, seconds]))
    .digest('hex');
  const cache = env.XDG_CACHE_HOME || join(env.HOME || homedir(), '.cache');
  return join(cache, 'coppice', 'credentials', `${print.slice(0, 32)}.json`);
}

/** The cached certificate. Undefined: none that lasts another minute. */
async function keptCredential(file: string, now: Date): Promise<Granted | undefined> {
  try {
    const kept = JSON.parse(await readFile(file, 'utf8')) as Partial<Granted>;
    const { cert, key, ca, endsAt } = kept;
    if (!cert || !key || !ca || !endsAt) return undefined;
    return Date.parse(endsAt) - +now > LEAST_LEFT_MS ? { cert, key, ca, endsAt } : undefined;
  } catch {
    return undefined;
  }
}

/** Caches the certificate. A failure to write only costs time. */
async function keepCredential(file: string, granted: Granted): Promise<void> {
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    await chmod(dirname(file), 0o700);
    const beside = `${file}.${process.pid}`;
    await writeFile(beside, JSON.stringify(granted), { mode: 0o600, flag: 'wx' });
    await rename(beside, file);
  } catch {}
}

/** Lifetime in seconds that the options ask for. Throws UsageError. */
export function expiresIn(options: Options): number {
  const { least, usual, most } = KUBECONFIG_SECONDS;
  const seconds = Math.round((options.number('expires-in') ?? usual * 1000) / 1000);
  if (seconds < least || seconds > most)
    throw new UsageError(
      `--expires-in takes ${least / 60}m to ${most / 3600}h: Kubernetes accepts nothing shorter, Coppice nothing longer`,
    );
  return seconds;
}

/** The --expires-in option for this lifetime. */
export const expiryOption = (seconds: number): string[] =>
  seconds === KUBECONFIG_SECONDS.usual ? [] : [`--expires-in=${seconds}s`];

/** Certificate request by the options. Throws UsageError. */
export const wantedBy = (options: Options, namespace: string, name: string): WantedKubeconfig => ({
  namespace,
  name,
  role: options.flag('viewer') ? 'viewer' : 'admin',
  seconds: expiresIn(options),
});

/** Kubeconfig with a certificate, which ends. */
export async function endingKubeconfig(
  { client }: CliConnection,
  wanted: WantedKubeconfig,
  server: string,
  signal: AbortSignal,
): Promise<string> {
  const { endsAt, ca, cert, key } = await askForCertificate(client, wanted, signal);
  const { name, role } = wanted;
  const said = `# ${role} of ${name} until ${endsAt}. With --exec or --merge, kubectl renews it automatically.\n`;
  return said + writeKubeconfigText({ server, ca, cert, key, name, user: role });
}

/** Kubeconfig in which kubectl calls this program for certificates. */
export async function renewingKubeconfig(
  context: Pick<Context, 'env' | 'signal'>,
  connection: CliConnection,
  wanted: WantedKubeconfig,
  server: string,
): Promise<string> {
  const { ca } = await credentialFor(context, connection, wanted);
  const { name, namespace, role, seconds } = wanted;
  const { files, context: of } = connection;
  const args = [
    'kubeconfig',
    name,
    `--namespace=${namespace}`,
    '--credential',
    ...(role === 'viewer' ? ['--viewer'] : []),
    ...expiryOption(seconds),
    ...(files.length === 1 ? [`--kubeconfig=${resolve(files[0]!)}`] : []),
    // Name the context: the current one may change later, even to this very one.
    ...(of === undefined ? [] : [`--context=${of}`]),
  ];
  const env: Record<string, string> =
    files.length === 1 ? {} : { KUBECONFIG: files.map((file) => resolve(file)).join(delimiter) };
  return pluginKubeconfig({
    server,
    ca,
    name,
    user: `${name}-${role}`,
    command: pathOfCoppice(context.env),
    args,
    env,
  });
}

/** Kubeconfig with this program as credential plugin. `env`: variables that kubectl sets for the plugin. */
export function pluginKubeconfig(plugin: {
  server: string;
  ca: string;
  name: string;
  user: string;
  command: string;
  args: readonly string[];
  env: Readonly<Record<string, string>>;
}): string {
  const { server, ca, name, user, command, args } = plugin;
  const env = Object.entries(plugin.env).map(([variable, value]) => ({ name: variable, value }));
  return dump(
    {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name, cluster: { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }],
      users: [
        {
          name: user,
          user: {
            exec: {
              apiVersion: 'client.authentication.k8s.io/v1',
              command,
              args,
              ...(env.length > 0 && { env }),
              interactiveMode: 'Never',
              provideClusterInfo: false,
              installHint: 'Install coppice, or create this kubeconfig again where it is installed.',
            },
          },
        },
      ],
      contexts: [{ name, context: { cluster: name, user } }],
      'current-context': name,
    },
    { lineWidth: -1 },
  );
}

/** Answer to kubectl when it calls this program as credential plugin for a cluster. */
export async function execCredential(context: Context, name: string): Promise<string> {
  const connection = await connect(context);
  return credentialText(
    await credentialFor(context, connection, wantedBy(context.options, connection.namespace, name)),
  );
}

/** A certificate in the format of credential plugins. */
export const credentialText = ({ cert, key, endsAt }: Granted): string =>
  JSON.stringify({
    apiVersion: 'client.authentication.k8s.io/v1',
    kind: 'ExecCredential',
    status: { clientCertificateData: cert, clientKeyData: key, expirationTimestamp: endsAt },
  });

async function credentialFor(
  { env, signal }: Pick<Context, 'env' | 'signal'>,
  { client, files, context, authority }: CliConnection,
  wanted: WantedKubeconfig,
): Promise<Granted> {
  // Two contexts of one API server may be two people: key the cache by context.
  const file = keptFile(JSON.stringify([client.server, files, context, authority]), wanted, env);
  const kept = await keptCredential(file, new Date());
  if (kept) return kept;
  const granted = await askForCertificate(client, wanted, signal);
  await keepCredential(file, granted);
  return granted;
}
