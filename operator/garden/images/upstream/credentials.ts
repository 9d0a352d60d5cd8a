import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { readText } from '../../host/files.ts';

interface DockerConfig {
  auths?: Record<string, { auth?: string; username?: string; password?: string }>;
  credHelpers?: Record<string, string>;
  credsStore?: string;
}

const HELPER_MS = 10_000;
const HELPER_BYTES = 64 * 1024;
/** Names of Docker Hub in `docker login`. */
const DOCKER_HUB = ['https://index.docker.io/v1/', 'index.docker.io', 'docker.io', 'registry-1.docker.io'];

/** Files written by `docker login` and `podman login`; the first with an entry for a registry applies. */
const configFiles = (env: NodeJS.ProcessEnv): string[] => {
  const home = env.HOME ?? '/root';
  return [
    ...(env.REGISTRY_AUTH_FILE ? [env.REGISTRY_AUTH_FILE] : []),
    join(env.DOCKER_CONFIG ?? join(home, '.docker'), 'config.json'),
    ...(env.XDG_RUNTIME_DIR ? [join(env.XDG_RUNTIME_DIR, 'containers', 'auth.json')] : []),
    join(home, '.config', 'containers', 'auth.json'),
  ];
};

/** `USER:PASSWORD` in base64 of this machine's login to a registry; undefined without one. */
export async function machineLogin(registry: string, env = process.env): Promise<string | undefined> {
  const names = registry === 'docker.io' ? DOCKER_HUB : [registry, `https://${registry}`, `https://${registry}/`];
  for (const file of configFiles(env)) {
    const config = parse(await readText(file).catch(() => undefined));
    for (const name of names) {
      const { auth, username, password } = config.auths?.[name] ?? {};
      if (auth) return auth;
      if (username && password) return basic(username, password);
      const helper = config.credHelpers?.[name];
      const said = helper && (await ask(helper, name, env));
      if (said) return said;
    }
    if (!config.credsStore) continue;
    for (const name of names) {
      const said = await ask(config.credsStore, name, env);
      if (said) return said;
    }
  }
  return undefined;
}

const basic = (user: string, password: string) => Buffer.from(`${user}:${password}`).toString('base64');

function parse(text: string | undefined): DockerConfig {
  try {
    return (JSON.parse(text ?? '{}') ?? {}) as DockerConfig;
  } catch {
    return {};
  }
}

/** Calls a credential helper as Docker does. A missing helper, or one without an entry, returns undefined. */
function ask(helper: string, registry: string, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  if (!/^[\w.-]+$/.test(helper)) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    const child = spawn(`docker-credential-${helper}`, ['get'], {
      env,
      stdio: ['pipe', 'pipe', 'ignore'],
      timeout: HELPER_MS,
    });
    let text = '';
    child.stdout.on('data', (chunk) => {
      if (text.length < HELPER_BYTES) text += chunk;
    });
    child.on('error', () => resolve(undefined));
    child.stdin.on('error', () => {});
    child.on('close', (code) => {
      try {
        const { Username, Secret } = JSON.parse(text) as { Username?: string; Secret?: string };
        // Identity tokens need another exchange, and are not supported.
        resolve(code === 0 && Username && Username !== '<token>' && Secret ? basic(Username, Secret) : undefined);
      } catch {
        resolve(undefined);
      }
    });
    child.stdin.end(registry);
  });
}
