/** What our own programs may see of this process's environment. */
export function childEnvironment(): Record<string, string> {
  const passed = [
    'PATH',
    'HOME',
    'LANG',
    'TZ',
    'COPPICE_HOME',
    'COPPICE_TOOLS',
    'COPPICE_PULUMI',
    'COPPICE_DATA',
    'COPPICE_LOG_LEVEL',
    'NODE_COMPILE_CACHE',
    'NODE_EXTRA_CA_CERTS',
    'HTTPS_PROXY',
    'HTTP_PROXY',
    'NO_PROXY',
  ];
  return variables(passed);
}

/** What a program needs besides that asks registries: how curl and Docker are told of proxies, certificates and logins. */
export const registryEnvironment = (): Record<string, string> =>
  variables([
    'https_proxy',
    'http_proxy',
    'no_proxy',
    'SSL_CERT_FILE',
    'SSL_CERT_DIR',
    'DOCKER_CONFIG',
    'REGISTRY_AUTH_FILE',
    'XDG_RUNTIME_DIR',
  ]);

const variables = (names: readonly string[]): Record<string, string> =>
  Object.fromEntries(names.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])));
