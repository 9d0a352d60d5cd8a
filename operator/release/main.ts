import { copyFile, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { load } from 'js-yaml';
import { errorText } from '../api/errors.ts';
import { imageArchitecture } from '../garden/host/architecture.ts';
import { run } from '../garden/host/command.ts';
import {
  buildOperatorImage,
  operatorImageName,
  productionModuleFiles,
} from '../garden/images/operator-image/build-operator-image.ts';
import { toolsDirectory } from '../garden/toolchain/cache.ts';
import { Toolchain } from '../garden/toolchain/toolchain.ts';
import { silent } from '../kube/log.ts';
import { checksumLines, digestOfFile, writeArchive } from './archive.ts';
import { cliArchive, type PackageManifest } from './cli-archive.ts';
import { releaseProblems } from './problems.ts';
import { releaseSbom } from './sbom.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const USAGE = 'usage: npm run release -- --output FOLDER [--image HOST/REPOSITORY:TAG]';
const MIB = 1024 * 1024;
const CHART = 'charts/coppice/';

const git = async (...args: string[]): Promise<string> => run(['git', '-C', ROOT, ...args]);
/** Items of an output of git with `-z`. */
const items = (text: string): string[] => text.split('\0').filter(Boolean);

/** `npm run release`: writes the files of a release, made from this commit, into a folder: image, chart, CLI archive, SBOM, checksums. */
async function main(): Promise<number> {
  const { values } = parseArgs({ options: { output: { type: 'string' }, image: { type: 'string' } } });
  if (values.output === undefined) {
    process.stderr.write(`${USAGE}\n`);
    return 2;
  }
  const output = resolve(values.output);
  const manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as PackageManifest;
  const chart = load(await readFile(join(ROOT, CHART, 'Chart.yaml'), 'utf8')) as {
    version: string;
    appVersion: string;
  };
  const { version } = manifest;
  const problems = releaseProblems({
    version,
    appVersion: chart.appVersion,
    changelog: await readFile(join(ROOT, 'CHANGELOG.md'), 'utf8').catch(() => ''),
    changed: items(await git('status', '--porcelain', '-z')).map((line) => line.slice(3)),
  });
  if (problems.length > 0) {
    process.stderr.write(problems.map((problem) => `release: ${problem}\n`).join(''));
    return 1;
  }
  await mkdir(output, { recursive: true });
  const tracked = items(await git('ls-files', '-z'));
  const toolchain = new Toolchain({ dir: toolsDirectory(), log: silent });
  const names: string[] = [];
  const pathOf = (name: string): string => {
    names.push(name);
    return join(output, name);
  };
  try {
    await writeArchive(
      pathOf(`coppice-${chart.version}.tgz`),
      // Helm reads the chart from a folder of its name.
      tracked
        .filter((path) => path.startsWith(CHART))
        .map((path) => ({ name: path.slice('charts/'.length), from: join(ROOT, path) })),
    );
    const node = process.versions.node;
    const modules = await productionModuleFiles();
    await writeArchive(pathOf(`coppice-cli-${version}.tar.gz`), cliArchive(ROOT, manifest, { tracked, modules, node }));
    const image = await buildOperatorImage(values.image ?? (await operatorImageName()), toolchain);
    await copyFile(image, pathOf(`coppice-operator-${version}-linux-${imageArchitecture()}.tar`));
    const { pulumi } = await toolchain.ensure(['pulumi']);
    const engine = (await run([pulumi, 'version'])).trim().replace(/^v/, '');
    const sbom = releaseSbom(
      await run(['npm', '--prefix', ROOT, 'sbom', '--sbom-format=cyclonedx', '--omit=dev']),
      [
        { name: 'node', version: node, purl: `pkg:generic/node@${node}` },
        { name: 'pulumi', version: engine, purl: `pkg:golang/github.com/pulumi/pulumi/pkg/v3@v${engine}` },
      ],
      (await git('log', '-1', '--format=%cI')).trim(),
    );
    await writeFile(pathOf(`coppice-${version}.cdx.json`), sbom);
  } finally {
    await toolchain.close();
  }
  const digests = new Map<string, string>();
  for (const name of names) digests.set(name, await digestOfFile(join(output, name)));
  await writeFile(join(output, 'SHA256SUMS'), checksumLines(digests));
  for (const [name, digest] of digests) {
    const { size } = await stat(join(output, name));
    console.log(`${(size / MIB).toFixed(1).padStart(7)} MiB  ${digest.slice(0, 12)}  ${join(output, name)}`);
  }
  return 0;
}

process.exitCode = await main().catch((error: unknown) => {
  const isUsage = (error as NodeJS.ErrnoException).code?.startsWith('ERR_PARSE_ARGS') === true;
  process.stderr.write(`release: ${errorText(error)}\n${isUsage ? `${USAGE}\n` : ''}`);
  return isUsage ? 2 : 1;
});
