import { spawn } from 'node:child_process';
import { copyFile, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { errorText } from '../../../api/errors.ts';
import { silent } from '../../../kube/log.ts';
import { toolsDirectory } from '../../toolchain/cache.ts';
import { Toolchain } from '../../toolchain/toolchain.ts';
import { parseReference } from '../reference.ts';
import { ImageStore } from '../store.ts';
import { buildOperatorImage, operatorImageName } from './build-operator-image.ts';

const COPPICE = fileURLToPath(new URL('../../../../bin/coppice', import.meta.url));
const USAGE = 'usage: npm run image -- [--name HOST/REPOSITORY:TAG] [--output FILE.tar] [--load]';
const MIB = 1024 * 1024;

/** `npm run image`: builds the operator's image; copies it to a file, or into the mirror of the embedded garden. */
async function main(): Promise<number> {
  const { values } = parseArgs({
    options: { name: { type: 'string' }, output: { type: 'string' }, load: { type: 'boolean' } },
  });
  const ref = values.name ?? (await operatorImageName());
  const toolchain = new Toolchain({ dir: toolsDirectory(), log: silent });
  try {
    const tar = await buildOperatorImage(ref, toolchain);
    const { size } = await stat(tar);
    const { registry, repository, tag } = parseReference(ref);
    const manifest = await new ImageStore(dirname(tar)).manifest(registry, repository, tag);
    console.log(`${ref}: ${manifest?.digest}, ${(size / MIB).toFixed(0)} MiB compressed`);
    if (values.output) await copyFile(tar, values.output);
    console.log(`OCI layout: ${values.output ?? tar}`);
    return values.load ? await load(tar) : 0;
  } finally {
    await toolchain.close();
  }
}

const load = (tar: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const child = spawn(COPPICE, ['load', tar], { stdio: 'inherit' });
    child.on('error', reject);
    child.on('close', (code) => resolve(code ?? 1));
  });

process.exitCode = await main().catch((error: unknown) => {
  const isUsage = (error as NodeJS.ErrnoException).code?.startsWith('ERR_PARSE_ARGS') === true;
  process.stderr.write(`image: ${errorText(error)}\n${isUsage ? `${USAGE}\n` : ''}`);
  return isUsage ? 2 : 1;
});
