import { ALL_GARDENS } from '../host/ranges.ts';

/** Variable of the daemon and its programs: digest of their code. */
export const CODE = 'COPPICE_CODE';

/** PATH of system programs, independent of the caller's. */
export const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Environment of Coppice's own programs. Gardens on this machine are excluded from proxies. */
export function childEnvironment(env: NodeJS.ProcessEnv = process.env): Record<string, string> {
  const passed = [
    'PATH',
    'HOME',
    'LANG',
    'TZ',
    'COPPICE_HOME',
    'COPPICE_TOOLS',
    'COPPICE_PULUMI',
    'COPPICE_DATA',
    // A process of an earlier version is therefore restarted instead of taken over.
    CODE,
    'COPPICE_LOG_LEVEL',
    'NODE_COMPILE_CACHE',
    'NODE_EXTRA_CA_CERTS',
    'HTTPS_PROXY',
    'HTTP_PROXY',
    'https_proxy',
    'http_proxy',
  ];
  return { ...variables(passed, env), ...directToGardens(env) };
}

/** Variables that exclude this machine's gardens and their clusters from a configured proxy. */
export function directToGardens(env: NodeJS.ProcessEnv): Record<string, string> {
  if (!env.HTTPS_PROXY && !env.https_proxy && !env.HTTP_PROXY && !env.http_proxy) return {};
  // Both spellings are set, since programs differ in which they read first.
  const said = (env.no_proxy || env.NO_PROXY || '').split(',').filter((entry) => entry && entry !== ALL_GARDENS);
  const direct = [...said, ALL_GARDENS].join(',');
  return { NO_PROXY: direct, no_proxy: direct };
}

/** Additional variables for clients of registries: certificates and logins, as for curl and Docker. */
export const registryEnvironment = (): Record<string, string> =>
  variables(['SSL_CERT_FILE', 'SSL_CERT_DIR', 'DOCKER_CONFIG', 'REGISTRY_AUTH_FILE', 'XDG_RUNTIME_DIR']);

const variables = (names: readonly string[], env: NodeJS.ProcessEnv = process.env): Record<string, string> =>
  Object.fromEntries(names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
