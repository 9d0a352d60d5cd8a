import { createWriteStream } from 'node:fs';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { connectGarden } from '../connect.ts';
import type { Context } from '../context.ts';
import { CliError, EXIT, UsageError } from '../errors.ts';
import { gardenDirectory } from '../garden.ts';
import { howToCallCoppice } from '../invocation.ts';
import { WORKER_CLUSTER_KIND } from '../kinds.ts';
import { missingError } from './get.ts';

const ARCHIVE = /\.(?:tar|tgz|tar\.gz|tar\.zst)$/;

/** `coppice load IMAGE|FILE.tar [--as NAME] [--cluster NAME]`. */
export async function run(context: Context): Promise<undefined> {
  const { options, positionals, env, terminal } = context;
  const what = positionals[0]!;
  const directory = gardenDirectory(env);
  const state = await directory.read();
  if (!state) throw new CliError('there is no garden here', { exitCode: EXIT.notFound, advice: 'run "coppice up"' });
  if (state.seed !== 'local') {
    const advice = 'push the image to a registry that the seed reaches';
    throw new CliError('this garden has no nodes of its own to load images onto', { advice });
  }
  if (state.rootless)
    throw new CliError('nodes are simulated in a garden without root, and run no pods that could use an image', {
      advice: 'bring up a garden as root',
    });
  const [{ keepImages }, { fullReference }] = await Promise.all([
    import('../../garden/images/load/keep.ts'),
    import('../../garden/images/reference.ts'),
  ]);
  const as = named(options.text('as'), fullReference);
  const cluster = options.text('cluster');
  const target = cluster === undefined ? undefined : await findCluster(context, cluster);

  const folder = await mkdtemp(join(directory.path('seed'), '.load-'));
  try {
    const isFile = what === '-' || ARCHIVE.test(what) || (await isFileHere(what));
    const file = isFile
      ? await unpacked(what, folder)
      : await saved(what, named(what, fullReference)!, folder, context);
    const images = await keepImages(
      file,
      directory.loadedImages,
      as ?? (isFile ? undefined : fullReference(what)),
    ).catch((error: Error) => {
      throw new CliError(`${what} cannot be loaded: ${error.message}`, { cause: error });
    });
    for (const { ref, digest } of images) terminal.print(`${ref} is loaded (${digest.slice(0, 19)}).`);
    await refreshNodes(
      context,
      images.map(({ ref }) => ref),
      target,
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function named(name: string | undefined, read: (name: string) => string): string | undefined {
  if (name === undefined) return undefined;
  try {
    return read(name);
  } catch {
    throw new UsageError(`"${name}" is neither an archive nor an image name`, 'write for example app:v1, or app.tar');
  }
}

const isFileHere = async (path: string): Promise<boolean> => {
  // A bare name may be a file or an image: it means the image, as in Docker.
  if (!/^[./]/.test(path)) return false;
  return (await stat(path).catch(() => undefined))?.isFile() ?? false;
};

/** The archive as an uncompressed tar: the file itself or a copy. */
async function unpacked(path: string, folder: string): Promise<string> {
  const [{ unpackArchive }, { NoRoomError, whileRoom }] = await Promise.all([
    import('../../garden/images/load/unpack.ts'),
    import('../../garden/host/disk-room.ts'),
  ]);
  const file = path === '-' ? join(folder, 'stdin') : path;
  try {
    if (path === '-')
      await pipeline(
        process.stdin,
        (content: AsyncIterable<Buffer>) => whileRoom(content, folder, 'the archive of standard input'),
        createWriteStream(file, { mode: 0o600 }),
      );
    return await unpackArchive(file, folder);
  } catch (error) {
    if (error instanceof NoRoomError)
      throw new CliError(error.message, { advice: 'free some space on that disk', cause: error });
    if ((error as NodeJS.ErrnoException).code === 'ENOENT')
      throw new CliError(`there is no file ${path}`, { exitCode: EXIT.notFound });
    throw error;
  }
}

async function saved(image: string, ref: string, folder: string, { terminal, env }: Context): Promise<string> {
  const { saveFromEngine } = await import('../../garden/images/load/engines.ts');
  const file = join(folder, 'archive.tar');
  const engine = await saveFromEngine(image, ref, file).catch((error: Error) => {
    // Under sudo, root does not see the images of the user's own engine.
    const advice =
      env.SUDO_USER && env.SUDO_USER !== 'root'
        ? `sudo shows root's images only: as ${env.SUDO_USER}, run "docker save ${image} | sudo ${howToCallCoppice(env)} load -", or the same with podman`
        : 'pull or build it first, or give an archive from "docker save"';
    throw new CliError(error.message, { exitCode: EXIT.notFound, advice, cause: error });
  });
  terminal.note(`${image} comes from ${engine}.`);
  return file;
}

async function findCluster(context: Context, name: string): Promise<{ name: string; namespace: string }> {
  const { client, namespace } = await connectGarden(context);
  try {
    const found = await client.getOrUndefined(WORKER_CLUSTER_KIND.resource, name, namespace);
    if (!found) throw await missingError(client, WORKER_CLUSTER_KIND, name, namespace, context.signal);
    return { name, namespace };
  } finally {
    await client.close();
  }
}

/** Makes nodes with an older image of this name, and nodes of the named cluster, pull the new image. */
async function refreshNodes(
  context: Context,
  refs: readonly string[],
  target: { name: string; namespace: string } | undefined,
): Promise<void> {
  const { terminal, env } = context;
  const { machinePods, takeOnNodes } = await import('../../garden/images/load/nodes.ts');
  const { client } = await connectGarden(context);
  try {
    const pods = await machinePods(client, target ?? 'those that have it').catch((error: Error) => {
      if (target) throw error;
      terminal.note('The garden is not running: its nodes pull the image when a pod needs it.');
      return [];
    });
    if (target && pods.length === 0)
      terminal.note(`WorkerCluster ${target.name} has no machine here that could pull it now.`);
    const kubeconfig = await readFile(gardenDirectory(env).kubeconfigFile('admin'), 'utf8');
    const failed: string[] = [];
    for (const ref of refs) {
      const results = await takeOnNodes(kubeconfig, pods, ref, target !== undefined);
      const taken = results.filter((one) => one.taken).map(({ node }) => node);
      if (taken.length > 0) terminal.note(`${ref}: pulled by ${taken.sort().join(', ')}.`);
      failed.push(
        ...results.flatMap(({ node, error }) => (error ? [`node ${node} did not pull ${ref}: ${error}`] : [])),
      );
    }
    if (failed.length > 0) throw new CliError(failed.join('; '), { advice: 'run the command again' });
  } finally {
    await client.close();
  }
}
