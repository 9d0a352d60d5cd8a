import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readdir, readlink, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { buildImage } from '../../operator/garden/images/build.ts';
import { ToolCache } from '../../operator/garden/toolchain/cache.ts';

type ImageSpec = Parameters<typeof buildImage>[0];

const exec = promisify(execFile);
/** Of an index and of some tens of packages, by a slow network. */
const PATIENCE_MS = 10 * 60_000;

/** What an image has of packages. */
export type Tree = Required<Pick<ImageSpec, 'files' | 'links' | 'directories'>>;

/** Folders of the root that are links into /usr, as Debian has them now. Its packages still say /bin. */
const MERGED = ['bin', 'sbin', 'lib', 'lib64'];
/** Nobody reads it in a test: most of what packages weigh. */
const LEFT_OUT =
  /^\/(?:var|boot|media|mnt|opt|srv|usr\/(?:games|include|src|local)|usr\/lib\/(?:systemd|[\w-]+\/(?:gconv|perl)))\/|^\/usr\/share\/(?!nginx\/)/;

/**
 * Files of Debian packages and of all that they need, as this machine's apt knows them. Nothing is installed, and nothing of the
 * machine's own apt is changed: it is told that no package is there. What was got before is used again.
 * @param toolsDir packages are kept in its folder `debian`. Throws what apt says where they cannot be had.
 */
export async function debianTree(packages: readonly string[], toolsDir: string): Promise<Tree> {
  const key = createHash('sha256')
    .update(JSON.stringify([process.arch, packages]))
    .digest('hex');
  const root = join(toolsDir, 'debian', key.slice(0, 16));
  if (!(await stat(root).catch(() => undefined))) await fetchInto(root, packages, toolsDir);
  return treeOf(root);
}

async function fetchInto(root: string, packages: readonly string[], toolsDir: string): Promise<void> {
  const work = await new ToolCache(toolsDir).workFolder();
  try {
    for (const folder of ['state/lists/partial', 'cache/archives/partial', 'root'])
      await mkdir(join(work, folder), { recursive: true });
    await writeFile(join(work, 'status'), '');
    const settings = [
      `Dir::State=${join(work, 'state')}`,
      `Dir::State::status=${join(work, 'status')}`,
      `Dir::Cache=${join(work, 'cache')}`,
      'APT::Sandbox::User=',
      'APT::Install-Recommends=false',
      'Debug::NoLocking=1',
    ].flatMap((setting) => ['-o', setting]);
    const apt = (...args: string[]) =>
      exec('apt-get', ['-qq', ...settings, ...args], { timeout: PATIENCE_MS, maxBuffer: 16 * 1024 ** 2 });
    await apt('update');
    await apt('install', '--yes', '--download-only', ...packages);
    const archives = join(work, 'cache', 'archives');
    for (const name of await readdir(archives)) {
      if (name.endsWith('.deb')) await exec('dpkg-deb', ['--extract', join(archives, name), join(work, 'root')]);
    }
    await mkdir(dirname(root), { recursive: true });
    await rename(join(work, 'root'), root);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Where the file of a package is in an image. */
export const mergedPath = (path: string): string => (MERGED.includes(path.split('/')[1] ?? '') ? `/usr${path}` : path);

async function treeOf(root: string): Promise<Tree> {
  const files = new Map<string, Tree['files'][number]>();
  const links = new Map<string, Tree['links'][number]>(
    MERGED.map((name) => [`/${name}`, { path: `/${name}`, target: `usr/${name}` }]),
  );
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    const from = join(entry.parentPath, entry.name);
    const path = mergedPath(from.slice(root.length));
    if (LEFT_OUT.test(path)) continue;
    if (entry.isSymbolicLink()) links.set(path, { path, target: await readlink(from) });
    else if (entry.isFile()) files.set(path, { path, from, mode: (await stat(from)).mode & 0o7777 });
  }
  for (const path of files.keys()) links.delete(path);
  const byPath = (a: { path: string }, b: { path: string }) => (a.path < b.path ? -1 : 1);
  const directories = [...MERGED.map((name) => ({ path: `/usr/${name}` })), { path: '/tmp', mode: 0o1777 }];
  return { files: [...files.values()].sort(byPath), links: [...links.values()].sort(byPath), directories };
}
