import { dirname } from 'node:path';
import { configurationProblem } from '../../operator/api/errors.ts';
import type { StackRequest } from './request.ts';

type Environment = Record<string, string>;

/** Variables of the operator's environment that are needed to reach a cloud. */
const INHERITED = [
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'TMPDIR',
  'TZ',
];
const SEARCH_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Environment of a worker, without names or credentials. */
export const workerEnvironment = (home: string, inherited: NodeJS.ProcessEnv = process.env): Environment => ({
  ...pick(inherited, INHERITED),
  PATH: SEARCH_PATH,
  // Not the operator's home: ~/.aws, ~/.azure and ~/.config/gcloud may hold foreign credentials.
  HOME: home,
});

/**
 * Environment of the engine and its plugins for one operation: only proxies and certificates of the operator, no
 * telemetry. Throws a CoppiceError when backend and account set one variable to different values: one would use the
 * other's credentials.
 */
export function engineEnvironment(
  request: Pick<StackRequest, 'backend' | 'credentials' | 'settings'>,
  place: { home: string; engine: string; acquirePlugins: boolean },
  inherited: NodeJS.ProcessEnv = process.env,
): Environment {
  const { backend, credentials, settings = {} } = request;
  for (const [name, value] of Object.entries(backend.env)) {
    const other = credentials[name] ?? settings[name];
    if (other !== undefined && other !== value) {
      throw configurationProblem(
        `the state backend and the cloud account both set ${name}, differently`,
        'Let the backend authenticate by other variables, for example ?profile= in its URL with AWS_SHARED_CREDENTIALS_FILE.',
      );
    }
  }
  if (!backend.secretsProvider && !backend.passphrase) {
    throw configurationProblem(
      'the state backend names neither a secrets provider nor a passphrase',
      'Give one: secrets in the state of a stack are encrypted with it.',
    );
  }
  const base = workerEnvironment(place.home, inherited);
  return {
    ...base,
    PATH: `${dirname(place.engine)}:${base.PATH}`,
    // Wrong credentials must fail instead of falling back to the role of the operator's machine.
    AWS_EC2_METADATA_DISABLED: 'true',
    ...settings,
    ...credentials,
    ...backend.env,
    PULUMI_HOME: place.home,
    PULUMI_BACKEND_URL: withoutSideFiles(backend.url),
    PULUMI_CONFIG_PASSPHRASE: backend.passphrase ?? '',
    PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS: 'true',
    PULUMI_DIY_BACKEND_GZIP: 'true',
    PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION: String(!place.acquirePlugins),
    // The stack's settings may be lost with its working directory; the state names the secrets manager.
    PULUMI_FALLBACK_TO_STATE_SECRETS_MANAGER: 'true',
    // A pulumi-resource-* on PATH may have another version than the SDK requires.
    PULUMI_IGNORE_AMBIENT_PLUGINS: 'true',
    PULUMI_SKIP_UPDATE_CHECK: 'true',
  };
}

/**
 * Disables `.attrs` files beside each file: they are not written atomically, and an engine killed meanwhile leaves an
 * empty one, which makes the state unreadable (gocloud.dev/blob/fileblob/attrs.go).
 */
function withoutSideFiles(backendURL: string): string {
  if (!backendURL.startsWith('file://')) return backendURL;
  const [path, query] = backendURL.split('?');
  const settings = new URLSearchParams(query);
  settings.set('metadata', 'skip');
  return `${path}?${settings}`;
}

/** Secrets of a request, for redaction. */
export const secretsOf = ({ backend, credentials }: Pick<StackRequest, 'backend' | 'credentials'>): string[] => [
  ...Object.values(credentials),
  ...Object.values(backend.env),
  backend.passphrase ?? '',
  passwordIn(backend.url),
];

const passwordIn = (url: string): string => {
  try {
    return decodeURIComponent(new URL(url).password);
  } catch {
    return '';
  }
};

const pick = (from: NodeJS.ProcessEnv, names: readonly string[]): Environment =>
  Object.fromEntries(names.flatMap((name) => (from[name] ? [[name, from[name]]] : [])));
