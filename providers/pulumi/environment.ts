import { dirname } from 'node:path';
import { configurationProblem } from '../../operator/api/errors.ts';
import type { StackRequest } from './request.ts';

type Environment = Record<string, string>;

/** Of the operator's own environment, what it takes to reach a cloud at all. */
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

/** What a worker starts with: nothing that names or authenticates anybody. */
export const workerEnvironment = (home: string, inherited: NodeJS.ProcessEnv = process.env): Environment => ({
  ...pick(inherited, INHERITED),
  PATH: SEARCH_PATH,
  // Not the operator's own: ~/.aws, ~/.azure and ~/.config/gcloud there are somebody else's credentials.
  HOME: home,
});

/**
 * What the engine, and so the provider plugins, of one operation run with: closed (nothing of the operator's but proxies and
 * certificates) and quiet (no calls home). Throws a CoppiceError when the backend and the account want different values of one
 * variable: either would be used in the other's name.
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
    // Wrong or missing credentials must fail, not fall back to the role of the machine that the operator runs on.
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
    // The stack's settings may be lost with its working directory; state says how its secrets are encrypted.
    PULUMI_FALLBACK_TO_STATE_SECRETS_MANAGER: 'true',
    // A pulumi-resource-* that happens to lie on PATH is not the version that the SDK asks for.
    PULUMI_IGNORE_AMBIENT_PLUGINS: 'true',
    PULUMI_SKIP_UPDATE_CHECK: 'true',
  };
}

/**
 * A directory without a `.attrs` file beside each file: those are written in place, and an engine that is killed right then
 * leaves an empty one, with which the state beside it cannot be read (gocloud.dev/blob/fileblob/attrs.go).
 */
function withoutSideFiles(backendURL: string): string {
  if (!backendURL.startsWith('file://')) return backendURL;
  const [path, query] = backendURL.split('?');
  const settings = new URLSearchParams(query);
  settings.set('metadata', 'skip');
  return `${path}?${settings}`;
}

/** Whatever of a request must never be seen. */
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
