import { access, readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { UNSHARE } from '../host/capabilities.ts';
import { readJson } from '../host/files.ts';
import { mountScript, ownFolders } from '../host/mounts.ts';
import { rootlessNetworkScript } from '../host/network.ts';
import { childEnvironment, SYSTEM_PATH } from '../processes/child-environment.ts';
import type { PidFileContent } from '../processes/processes.ts';
import type { ProcessSpec } from '../processes/supervisor.ts';
import type { StateDirectory } from '../state/state.ts';
import type { GardenOfSeed } from './garden-of-seed.ts';
import { type SeedNamespaces, seedFolders } from './seed-namespaces.ts';

const PROXY = fileURLToPath(new URL('./seed-proxy-main.ts', import.meta.url));
/** The process that holds the namespaces: everything in them ends with it. */
export const HOLDER = 'seed-namespaces';
/** Process name of the proxy into the namespaces. */
export const SEED_PROXY = 'seed-proxy';
/** Marker in the seed's own /run: setup is complete. */
const FURNISHED = '/run/coppice/furnished';
/** Longest path of a Unix socket in the kernel. */
const SOCKET_NAME_BYTES = 107;

/**
 * Script that enters the namespaces of the holder's child, recorded in a file: its PID changes with each start. Fails
 * until setup is complete.
 */
const ENTER = `record=
read -r record <"$0" || :
pid=\${record#*:}
pid=\${pid%%,*}
child= others=
read -r child others <"/proc/$pid/task/$pid/children" || :
[ -e "/proc/$child/root${FURNISHED}" ] || { echo "the seed's namespaces are not there yet" >&2; exit 1; }
exec nsenter --target "$child" --preserve-credentials "$@"`;

const enter = (directory: StateDirectory, ...flags: string[]): string[] => [
  '/bin/sh',
  '-euc',
  ENTER,
  directory.pidFile(HOLDER),
  ...flags,
];

/** Access to the seed for host processes: a proxy in the seed that serves CONNECT at a Unix socket. */
const proxy = (directory: StateDirectory, words: readonly string[]): ProcessSpec => ({
  name: SEED_PROXY,
  command: [...words, process.execPath, '--max-semi-space-size=1', PROXY, directory.seedSocket],
  env: childEnvironment(),
  ready: () => accepts(directory.seedSocket),
});

/** The socket's file outlives a killed proxy, so a connection is tried. */
const accepts = (socketFile: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(socketFile, () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });

/**
 * User namespaces held by one process. Processes inside are the ordinary user, without further rights.
 * @param onAnew called when the holder was killed and the namespaces were recreated: everything inside ended; processes
 * that only use the network must be restarted
 */
export async function rootlessNamespaces(
  { directory, supervisor, state }: GardenOfSeed,
  onAnew: () => void = () => {},
): Promise<SeedNamespaces> {
  if (Buffer.byteLength(directory.seedSocket) > SOCKET_NAME_BYTES)
    throw new Error(`${directory.root} is too long a path for a socket: set COPPICE_HOME to a shorter path`);
  const binds = await seedFolders(directory);
  const runFolder = directory.path('ns', 'run');
  const script = [
    'set -eu',
    `trap 'exit 0' TERM INT`,
    ...ownFolders(directory.home),
    `mkdir -p '${runFolder.replaceAll("'", "'\\''")}'`,
    mountScript(binds, runFolder, { settings: false }),
    rootlessNetworkScript(state.ranges),
    `: >${FURNISHED}`,
    // The first process of a namespace must reap the others, and ignores signals without a handler.
    'while :; do sleep 86400 & wait $!; done',
  ].join('\n');
  const everything = enter(directory, '--user', '--mount', '--net', '--pid', '--wd=/', '--');
  const enterNetwork = enter(directory, '--user', '--net', '--');
  await supervisor.start({
    name: HOLDER,
    command: [...UNSHARE, '/bin/sh', '-c', script],
    env: { PATH: SYSTEM_PATH },
    ready: () => isFurnished(directory),
    readyTimeoutMs: 20_000,
    onAgain: onAnew,
  });
  await supervisor.start(proxy(directory, enterNetwork));
  return {
    enter: everything,
    enterNetwork,
    cgroup: undefined,
    // Pods end with the holder.
    endPods: async () => {},
  };
}

/** Whether the namespaces exist with all their mounts. */
async function isFurnished(directory: StateDirectory): Promise<boolean> {
  const holder = await readJson<PidFileContent>(directory.pidFile(HOLDER));
  if (!holder) return false;
  const children = await readFile(`/proc/${holder.pid}/task/${holder.pid}/children`, 'utf8');
  const [child] = children.split(' ');
  return child ? access(`/proc/${child}/root${FURNISHED}`).then(() => true) : false;
}
