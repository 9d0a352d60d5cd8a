import { join } from 'node:path';
import type { ArchivedFile } from './archive.ts';

/** Tracked files of the checkout that the command line reads. */
const CLI_FILES = /^(?:bin\/coppice|operator\/|providers\/|profiles\/|examples\/|LICENSE$|CHANGELOG\.md$)/;

/** Name of the file in which the archive tells people what it needs. */
const READ_FIRST = 'README.txt';

/** What package.json of the checkout says, as far as the archive takes it over. */
export interface PackageManifest {
  name: string;
  version: string;
  license: string;
}

/**
 * Files of the archive of the command line: sources, production modules, and no Node.
 * @param root folder of the checkout
 * @param tracked paths that git tracks
 * @param modules paths of files of production packages
 * @param node the Node version that the tests ran on, for example `24.21.0`
 */
export function cliArchive(
  root: string,
  { name, version, license }: PackageManifest,
  { tracked, modules, node }: { tracked: readonly string[]; modules: readonly string[]; node: string },
): ArchivedFile[] {
  const folder = `${name}-${version}`;
  const [major] = node.split('.');
  const manifest = { name, version, license, type: 'module', engines: { node: `>=${major}` } };
  const readFirst = `Coppice ${version}: its command line, tried on Linux.

It needs Node ${major} or later on PATH (tests ran on ${node}) and nothing else. Run:

    ${folder}/bin/coppice help
    ln -s "$PWD/${folder}/bin/coppice" /usr/local/bin/coppice

"coppice start" makes an embedded garden, on Linux alone. All else is for a garden that runs somewhere: KUBECONFIG, or --kubeconfig FILE.

Checksums: SHA256SUMS beside this archive. Changes: CHANGELOG.md. License: LICENSE.
`;
  return [
    { name: `${folder}/${READ_FIRST}`, content: readFirst },
    { name: `${folder}/package.json`, content: `${JSON.stringify(manifest, undefined, 2)}\n` },
    ...[...tracked.filter((path) => CLI_FILES.test(path)), ...modules].map((path) => ({
      name: `${folder}/${path}`,
      from: join(root, path),
      isExecutable: path === 'bin/coppice',
    })),
  ];
}
