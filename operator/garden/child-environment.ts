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
  return Object.fromEntries(
    passed.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  );
}
