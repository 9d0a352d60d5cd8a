import { mkdir, readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from './command.ts';
import { isMissing } from './files.ts';

/**
 * The seed's mount namespace, kept by a file: mounts of containerd and kubelet do not appear on the host, and are gone
 * with the namespace. It also gives the seed its own /run and short paths (a socket path has at most 108 characters,
 * wherever the state directory is).
 */
interface SeedMounts {
  /** Folder with the namespace's file. */
  folder: string;
  /** Host folders by their path in the seed. Each path must be below /run or exist on the host. */
  binds: Record<string, string>;
}

/** Paths in the seed. */
export const SEED_PATHS = {
  containerd: '/run/coppice/containerd',
  kubelet: '/run/coppice/kubelet',
  config: '/run/coppice/config',
  /** Addresses allocated to pods; lost with the namespace, like the pods' interfaces. */
  addresses: '/run/coppice/addresses',
  socket: '/run/containerd/containerd.sock',
} as const;

/**
 * Kernel settings that every kubelet requires. They apply to the whole machine, so the seed's kubelet sees small files
 * in their place.
 */
const KUBELET_SETTINGS: Record<string, string> = {
  'vm/overcommit_memory': '1',
  'vm/panic_on_oom': '0',
  'kernel/panic': '10',
  'kernel/panic_on_oops': '1',
  'kernel/keys/root_maxkeys': '1000000',
  'kernel/keys/root_maxbytes': '25000000',
};

/** Folders outside the state directory with paths fixed in libraries; the seed has its own there. */
export const FIXED_FOLDERS = ['/var/lib/cni'] as const;

export const mountNamespaceFile = (folder: string): string => join(folder, 'mnt');

const isMountPoint = async (path: string): Promise<boolean> =>
  (await readFile('/proc/self/mountinfo', 'utf8')).split('\n').some((line) => line.split(' ')[4] === escapePath(path));

/** Escapes a path as the kernel does in mountinfo. */
const escapePath = (path: string): string =>
  path.replace(/[ \t\n\\]/g, (c) => `\\${c.charCodeAt(0).toString(8).padStart(3, '0')}`);

/** Creates the mount namespace unless it exists. Resolves to whether it is new. */
export async function setUpMounts(mounts: SeedMounts): Promise<boolean> {
  const file = mountNamespaceFile(mounts.folder);
  if (await isMountPoint(file)) return false;
  await tearDownMounts(mounts.folder);
  await mkdir(mounts.folder, { recursive: true, mode: 0o700 });
  // A namespace file can only be mounted where mounts do not propagate.
  await run(['mount', '-n', '--bind', mounts.folder, mounts.folder]);
  await run(['mount', '-n', '--make-private', mounts.folder]);
  await writeFile(file, '');
  // Later mounts of the host propagate inside, none outside.
  await run(['unshare', `--mount=${file}`, '--propagation', 'slave', 'true']);
  const room = join(mounts.folder, 'run');
  await mkdir(room, { recursive: true });
  try {
    await run(['nsenter', `--mount=${file}`, '--wd=/', '/bin/sh', '-eu', '-s'], {
      input: mountScript(mounts.binds, room),
    });
  } catch (error) {
    await tearDownMounts(mounts.folder);
    throw error;
  }
  return true;
}

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/**
 * Shell script that sets up the namespace. `room`: empty folder for the new /run. `settings`: whether the kubelet sees
 * replaced kernel settings; in a user namespace it accepts the real ones.
 */
export function mountScript(
  binds: Record<string, string>,
  room: string,
  { settings = true }: { settings?: boolean } = {},
): string {
  const entries = Object.entries(binds);
  const below = entries.filter(([path]) => path.startsWith('/run/'));
  const others = entries.filter(([path]) => !path.startsWith('/run/'));
  return [
    ...others.map(([path, source]) => `mount -n --bind ${quote(source)} ${quote(path)}`),
    // Sources may be below the old /run, so they are bound before the new one hides it.
    `mount -n -t tmpfs -o mode=0755,nosuid,nodev coppice-run ${quote(room)}`,
    ...below.flatMap(([path, source]) => {
      const target = quote(join(room, path.slice('/run'.length)));
      return [`mkdir -p ${target}`, `mount -n --bind ${quote(source)} ${target}`];
    }),
    `mount -n --move ${quote(room)} /run`,
    `mkdir -p ${SEED_PATHS.config} ${SEED_PATHS.addresses} /run/lock /run/coppice/settings`,
    ...Object.entries(settings ? KUBELET_SETTINGS : {}).flatMap(([name, value]) => {
      const fake = `/run/coppice/settings/${name.replaceAll('/', '.')}`;
      return [
        `if [ -e /proc/sys/${name} ]; then echo ${value} >${fake}; mount -n --bind ${fake} /proc/sys/${name}; fi`,
      ];
    }),
    // Mounts of a container must propagate within the seed. A shared mount cannot be moved, hence last.
    'mount -n --make-rshared /',
  ].join('\n');
}

/** Unmounts the mount namespace: its mounts are gone once it has no process. */
export async function tearDownMounts(folder: string): Promise<void> {
  for (const path of [mountNamespaceFile(folder), folder]) {
    for (let i = 0; i < 5 && (await isMountPoint(path)); i++) await run(['umount', '-n', '--lazy', path]);
  }
  await rm(mountNamespaceFile(folder), { force: true });
}

const MARKER = '.made-by-coppice';

/** Contains folders that an ordinary user may not create or write on the host. */
const LIBRARY = '/var/lib';
/** Folder of every kubelet's device sockets, wherever its own folder is. */
const KUBELET_DEVICES = `${LIBRARY}/kubelet`;

/** Script lines that create those folders in an ordinary user's namespace, without the host's files. */
export function ownFolders(stateFolder: string): string[] {
  const folders = [...FIXED_FOLDERS, KUBELET_DEVICES];
  const inTheWay = `the state directory must not be in ${LIBRARY}, where this machine lacks ${folders.join(' or ')}`;
  return [
    `if ! { ${folders.map((folder) => `[ -d ${folder} ]`).join(' && ')}; }; then`,
    `  case ${quote(`${stateFolder}/`)} in ${LIBRARY}/*) echo ${quote(inTheWay)} >&2; exit 1 ;; esac`,
    `  mount -n -t tmpfs -o mode=0755 coppice-lib ${LIBRARY}`,
    `  mkdir ${folders.join(' ')}`,
    'fi',
    `mount -n -t tmpfs -o mode=0755 coppice-lib ${KUBELET_DEVICES}`,
  ];
}

/** Creates folders that programs require, marked as Coppice's unless they existed. */
export async function makeFolders(folders: readonly string[]): Promise<void> {
  for (const folder of folders) {
    const isNew = (await mkdir(folder, { recursive: true })) !== undefined;
    if (isNew) await writeFile(join(folder, MARKER), '');
  }
}

/** Removes marked folders without other contents. No other garden may run, since it would lose its mounts there. */
export async function removeFolders(folders: readonly string[]): Promise<void> {
  for (const folder of folders) {
    const entries = await readdir(folder).catch((error) => {
      if (isMissing(error)) return [];
      throw error;
    });
    if (entries.length !== 1 || entries[0] !== MARKER) continue;
    await rm(join(folder, MARKER));
    await rmdir(folder);
  }
}
