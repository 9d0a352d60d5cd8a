import { delimiter, resolve } from 'node:path';
import { dump } from 'js-yaml';
import { KUBECONFIG_SECONDS } from '../../api/kubeconfig-request.ts';
import { kubeconfig } from '../../pki/kubeconfig.ts';
import { type Connection, connect } from '../connect.ts';
import type { Context, Options } from '../context.ts';
import { UsageError } from '../errors.ts';
import { pathOfCoppice } from '../invocation.ts';
import { askForCertificate, type Granted, type Wanted } from './ask.ts';
import { keepCredential, keptCredential, keptFile } from './kept-credential.ts';

/** For how many seconds the options want a certificate. Throws UsageError. */
export function expiresIn(options: Options): number {
  const { least, usual, most } = KUBECONFIG_SECONDS;
  const seconds = Math.round((options.number('expires-in') ?? usual * 1000) / 1000);
  if (seconds < least || seconds > most)
    throw new UsageError(
      `--expires-in takes ${least / 60}m to ${most / 3600}h: Kubernetes accepts nothing shorter, Coppice nothing longer`,
    );
  return seconds;
}

/** The option that says so again. */
export const expiryOption = (seconds: number): string[] =>
  seconds === KUBECONFIG_SECONDS.usual ? [] : [`--expires-in=${seconds}s`];

/** What the options say of the certificate. Throws UsageError. */
export const wantedBy = (options: Options, namespace: string, name: string): Wanted => ({
  namespace,
  name,
  role: options.flag('viewer') ? 'viewer' : 'admin',
  seconds: expiresIn(options),
});

/** A kubeconfig with a certificate in it, which ends. */
export async function endingKubeconfig(
  { client }: Connection,
  wanted: Wanted,
  server: string,
  signal: AbortSignal,
): Promise<string> {
  const { endsAt, ca, cert, key } = await askForCertificate(client, wanted, signal);
  const { name, role } = wanted;
  const said = `# ${role} of ${name} until ${endsAt}. With --exec or --merge, kubectl renews it automatically.\n`;
  return said + kubeconfig({ server, ca, cert, key, name, user: role });
}

/** A kubeconfig that has kubectl ask this program for a certificate, as often as it needs one. */
export async function renewingKubeconfig(
  context: Pick<Context, 'env' | 'signal'>,
  connection: Connection,
  wanted: Wanted,
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
    // Which context is the current one may change, to this very one too.
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

/** A kubeconfig that has kubectl call this program for a certificate. `env`: what it is to find in its environment then. */
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

/** What kubectl is told that has called this program as its credential plugin. */
export async function execCredential(context: Context, name: string): Promise<string> {
  const connection = await connect(context);
  return credentialText(
    await credentialFor(context, connection, wantedBy(context.options, connection.namespace, name)),
  );
}

/** A certificate as kubectl takes it from its credential plugins. */
export const credentialText = ({ cert, key, endsAt }: Granted): string =>
  JSON.stringify({
    apiVersion: 'client.authentication.k8s.io/v1',
    kind: 'ExecCredential',
    status: { clientCertificateData: cert, clientKeyData: key, expirationTimestamp: endsAt },
  });

async function credentialFor(
  { env, signal }: Pick<Context, 'env' | 'signal'>,
  { client, files, context, authority }: Connection,
  wanted: Wanted,
): Promise<Granted> {
  // Who asks is part of it: two contexts of one API server may be two people.
  const file = keptFile(JSON.stringify([client.server, files, context, authority]), wanted, env);
  const kept = await keptCredential(file, new Date());
  if (kept) return kept;
  const granted = await askForCertificate(client, wanted, signal);
  await keepCredential(file, granted);
  return granted;
}
