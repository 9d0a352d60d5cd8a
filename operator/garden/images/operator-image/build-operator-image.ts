import { access, readdir, readFile, realpath } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from '../../host/command.ts';
import { isExecutable } from '../../toolchain/cache.ts';
import type { Toolchain } from '../../toolchain/toolchain.ts';
import { buildImage, type ImageFile } from '../build.ts';
import {
  APP_FOLDER,
  isRead,
  isSource,
  linkedLibraries,
  OPERATOR_UID,
  productionPackages,
  SOURCE_FOLDERS,
} from './contents.ts';

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));
const NODE = '/usr/local/bin/node';
const PULUMI = '/usr/local/bin/pulumi';
/** Node includes its own certificates; Pulumi's engine and plugins read the system's. */
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';
const [EXECUTABLE, READABLE] = [0o555, 0o444];

/** Default image name, which no registry has. Same as the chart's default. */
export const OPERATOR_REPOSITORY = 'coppice.local/operator';

/** Image name of this checkout. */
export const operatorImageName = async (): Promise<string> => {
  const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  return `${OPERATOR_REPOSITORY}:${version}`;
};

/**
 * Builds the operator's image from this checkout: the pinned Node runtime with the linked libraries of this machine,
 * sources, production modules, and Pulumi's engine. Equal contents give the same image. Resolves to its tar, an OCI
 * layout. Throws a list of missing parts.
 * @param ref full name, `host/repository:tag`
 */
export async function buildOperatorImage(ref: string, toolchain: Toolchain): Promise<string> {
  const node = join(ROOT, 'node_modules/node/bin/node');
  if (!(await isExecutable(node))) throw new Error(`there is no Node runtime at ${node}: run bin/setup`);
  const [linked, modules, sources, { pulumi }] = await Promise.all([
    run(['ldd', node]).then(linkedLibraries),
    productionModuleFiles(),
    sourceFiles(),
    toolchain.ensure(['pulumi']),
  ]);
  const hasCertificates = await access(CERTIFICATES).then(
    () => true,
    () => false,
  );
  const files: ImageFile[] = [
    { path: NODE, from: node, mode: EXECUTABLE },
    { path: PULUMI, from: pulumi, mode: EXECUTABLE },
    ...(await Promise.all(linked.map(async (path) => ({ path, from: await realpath(path), mode: EXECUTABLE })))),
    ...(hasCertificates ? [{ path: CERTIFICATES, from: await realpath(CERTIFICATES), mode: READABLE }] : []),
    { path: '/etc/passwd', content: `coppice:x:${OPERATOR_UID}:${OPERATOR_UID}::/tmp:/sbin/nologin\n`, mode: READABLE },
    { path: '/etc/group', content: `coppice:x:${OPERATOR_UID}:\n`, mode: READABLE },
    ...[...sources, ...modules].map((name) => ({
      path: `${APP_FOLDER}/${name}`,
      from: join(ROOT, name),
      mode: READABLE,
    })),
  ];
  return buildImage(
    {
      ref,
      files,
      directories: [{ path: '/tmp', mode: 0o1777 }, { path: '/data' }],
      owner: OPERATOR_UID,
      user: `${OPERATOR_UID}:${OPERATOR_UID}`,
      workingDir: APP_FOLDER,
      entrypoint: [NODE, 'operator/main.ts'],
      // The only writable folder with a read-only root file system.
      env: {
        HOME: '/tmp',
        NODE_ENV: 'production',
        COPPICE_PULUMI: PULUMI,
        NODE_COMPILE_CACHE: '/tmp/node-compile-cache',
      },
      labels: {
        'org.opencontainers.image.title': 'Coppice operator',
        'org.opencontainers.image.licenses': 'Apache-2.0',
      },
    },
    { toolsDir: toolchain.dir },
  );
}

/** Files of the packages that the operator and the command line read when they run: paths in the checkout, sorted. */
export async function productionModuleFiles(): Promise<string[]> {
  const lock = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8')) as Parameters<
    typeof productionPackages
  >[0];
  const names = await Promise.all(
    productionPackages(lock).map(async (folder) => {
      // Nested packages have their own lines.
      const all = await filesIn(folder, (name) => name !== 'node_modules');
      return all.filter((name) => isRead(relative(folder, name)));
    }),
  );
  return names.flat().sort();
}

async function sourceFiles(): Promise<string[]> {
  const names = await Promise.all(SOURCE_FOLDERS.map((folder) => filesIn(folder, () => true)));
  return [...names.flat().filter(isSource), 'package.json'].sort();
}

/** Files below a folder of the checkout, by relative path. */
async function filesIn(folder: string, enter: (name: string) => boolean): Promise<string[]> {
  const entries = await readdir(join(ROOT, folder), { withFileTypes: true }).catch(() => {
    throw new Error(`there is no ${folder} in ${ROOT}: run bin/setup`);
  });
  const found = await Promise.all(
    entries.map(async (entry) => {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory()) return enter(entry.name) ? filesIn(path, enter) : [];
      return entry.isFile() ? [path] : [];
    }),
  );
  return found.flat();
}
