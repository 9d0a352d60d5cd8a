import { ALL_GARDENS } from '../host/ranges.ts';

/** Variable of the daemon and its programs: which files of Coppice they run. */
export const CODE = 'COPPICE_CODE';

/** PATH of programs of the system, which need nothing of the caller's. */
export const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** What our own programs may see of this process's environment. Proxies do not lead to gardens of this machine. */
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
    // So what runs the files of an earlier version is not taken over, but started again.
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

/** What has whoever knows a proxy reach the gardens of this machine, and their clusters, without it. */
export function directToGardens(env: NodeJS.ProcessEnv): Record<string, string> {
  if (!env.HTTPS_PROXY && !env.https_proxy && !env.HTTP_PROXY && !env.http_proxy) return {};
  // Both are told, since each program looks at one of them first.
  const said = (env.no_proxy || env.NO_PROXY || '').split(',').filter((entry) => entry && entry !== ALL_GARDENS);
  const direct = [...said, ALL_GARDENS].join(',');
  return { NO_PROXY: direct, no_proxy: direct };
}

/** What a program needs besides that asks registries: how curl and Docker are told of certificates and logins. */
export const registryEnvironment = (): Record<string, string> =>
  variables(['SSL_CERT_FILE', 'SSL_CERT_DIR', 'DOCKER_CONFIG', 'REGISTRY_AUTH_FILE', 'XDG_RUNTIME_DIR']);

const variables = (names: readonly string[], env: NodeJS.ProcessEnv = process.env): Record<string, string> =>
  Object.fromEntries(names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
