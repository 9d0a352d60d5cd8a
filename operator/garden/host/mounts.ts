import { mkdir, readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from './command.ts';
import { isMissing } from './files.ts';

/**
 * The seed's view of the file system: a mount namespace kept by a file, so that no mount of containerd or kubelet shows
 * on the host, and all of them are gone with the namespace. It also gives the seed its own /run and short paths (the
 * path of a socket may have 108 characters, wherever the state directory lies).
 */
interface SeedMounts {
  /** Folder that holds the namespace's file. */
  folder: string;
  /** Folders of the host by the path where the seed sees them. Each must be below /run, or be there on the host. */
  binds: Record<string, string>;
}

/** Paths as the seed sees them. */
export const SEED_PATHS = {
  containerd: '/run/coppice/containerd',
  kubelet: '/run/coppice/kubelet',
  config: '/run/coppice/config',
  /** Addresses that pods hold; forgotten with the namespace, as the pods' interfaces are. */
  addresses: '/run/coppice/addresses',
  socket: '/run/containerd/containerd.sock',
} as const;

/**
 * What every kubelet insists on in the kernel's settings. They are the whole machine's, so the seed's kubelet is shown
 * small files in their place and finds all as it wants it.
 */
const KUBELET_SETTINGS: Record<string, string> = {
  'vm/overcommit_memory': '1',
  'vm/panic_on_oom': '0',
  'kernel/panic': '10',
  'kernel/panic_on_oops': '1',
  'kernel/keys/root_maxkeys': '1000000',
  'kernel/keys/root_maxbytes': '25000000',
};

/** Folders outside the state directory that libraries have fixed in their code; the seed sees its own ones there. */
export const FIXED_FOLDERS = ['/var/lib/cni'] as const;

export const mountNamespaceFile = (folder: string): string => join(folder, 'mnt');

const isMountPoint = async (path: string): Promise<boolean> =>
  (await readFile('/proc/self/mountinfo', 'utf8')).split('\n').some((line) => line.split(' ')[4] === escapePath(path));

/** As the kernel writes paths in mountinfo. */
const escapePath = (path: string): string =>
  path.replace(/[ \t\n\\]/g, (c) => `\\${c.charCodeAt(0).toString(8).padStart(3, '0')}`);

/** Makes the mount namespace unless it is there. Resolves to whether it is new. */
export async function setUpMounts(mounts: SeedMounts): Promise<boolean> {
  const file = mountNamespaceFile(mounts.folder);
  if (await isMountPoint(file)) return false;
  await tearDownMounts(mounts.folder);
  await mkdir(mounts.folder, { recursive: true, mode: 0o700 });
  // A namespace's file can only be mounted where the mount is not passed on to others.
  await run(['mount', '-n', '--bind', mounts.folder, mounts.folder]);
  await run(['mount', '-n', '--make-private', mounts.folder]);
  await writeFile(file, '');
  // The host's later mounts are seen inside, nothing passes the other way.
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
 * The shell script that furnishes the namespace. `room` is an empty folder to build the new /run in. `settings`: whether the kubelet is
 * shown settings of the kernel as it wants them; in a user namespace it takes them as they are.
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
    // Sources may lie below the old /run, so they are bound before the new one hides it.
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
    // Mounts of one container must reach others that ask for it, within the seed. A shared mount cannot be moved: last.
    'mount -n --make-rshared /',
  ].join('\n');
}

/** Lets go of the mount namespace: its mounts are gone once no process is in it. */
export async function tearDownMounts(folder: string): Promise<void> {
  for (const path of [mountNamespaceFile(folder), folder]) {
    for (let i = 0; i < 5 && (await isMountPoint(path)); i++) await run(['umount', '-n', '--lazy', path]);
  }
  await rm(mountNamespaceFile(folder), { force: true });
}

const MARKER = '.made-by-coppice';

/** Below it are folders that no user may make for the host, or write to. */
const LIBRARY = '/var/lib';
/** Where every kubelet has its sockets for devices, wherever its own folder is. */
const KUBELET_DEVICES = `${LIBRARY}/kubelet`;

/** Lines of a script that makes those folders in a namespace of an ordinary user, without the host's files that hinder. */
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

/** Makes folders that a program insists on, marked as ours unless they were there. */
export async function makeFolders(folders: readonly string[]): Promise<void> {
  for (const folder of folders) {
    const isNew = (await mkdir(folder, { recursive: true })) !== undefined;
    if (isNew) await writeFile(join(folder, MARKER), '');
  }
}

/** Removes folders that are marked as ours and hold nothing else. No other garden may run: it would lose its mounts there. */
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
