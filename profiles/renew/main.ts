import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { load } from 'js-yaml';
import type { CloudProfile } from '../../operator/api/cloudprofile.ts';
import { readAws } from './aws.ts';
import { readAzure } from './azure.ts';
import { readGcp } from './gcp.ts';
import type { ReadPrices } from './price-list.ts';
import { renew } from './rewrite.ts';

const READERS: Readonly<Record<string, ReadPrices>> = {
  aws: readAws,
  azure: readAzure,
  gcp: readGcp(process.env.COPPICE_GCP_API_KEY),
};

const USAGE = `npm run prices -- [CLOUD...] [--dry-run] [--directory DIR] [--from CLOUD=URL]

  CLOUD        ${Object.keys(READERS).join(', ')} (default: all)
  --dry-run    says what would change
  --directory  where the profiles are (default: profiles/)
  --from       where a cloud's list is, in place of the cloud's own address

Renews the prices in profiles/*.yaml from the clouds' price lists; gcp wants an API key in COPPICE_GCP_API_KEY.
`;

/** Renews one profile. Resolves to what is to be told of it. Throws one line; the file is then as it was. */
async function renewFile(file: string, cloud: string, from: string | undefined, isDry: boolean): Promise<string[]> {
  const text = await readFile(file, 'utf8');
  const { spec } = load(text) as CloudProfile;
  const list = await READERS[cloud]!(
    { regions: spec.regions.map(({ name }) => name), machineTypes: spec.machineTypes },
    {
      today: new Date().toISOString().slice(0, 10),
      signal: new AbortController().signal,
      ...(from !== undefined && { base: from }),
    },
  );
  const renewal = renew(text, list);
  if (!isDry) {
    // A kill in the middle must not leave half a profile.
    await writeFile(`${file}.new`, renewal.text);
    await rename(`${file}.new`, file);
  }
  return [`${renewal.changed} prices ${isDry ? 'would change' : 'changed'}`, ...renewal.remarks];
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      'dry-run': { type: 'boolean', default: false },
      directory: { type: 'string', default: fileURLToPath(new URL('..', import.meta.url)) },
      from: { type: 'string', multiple: true, default: [] },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  const unknown = positionals.find((cloud) => !Object.hasOwn(READERS, cloud));
  if (unknown !== undefined)
    throw new Error(`there is no price list of ${unknown}, only of ${Object.keys(READERS).join(', ')}`);
  const places = new Map(values.from.map((text) => [text.split('=')[0]!, text.slice(text.indexOf('=') + 1)]));
  let failed = 0;
  for (const cloud of positionals.length > 0 ? positionals : Object.keys(READERS)) {
    const file = join(values.directory, `${cloud}.yaml`);
    try {
      const told = await renewFile(file, cloud, places.get(cloud), values['dry-run']);
      for (const line of told) process.stdout.write(`${cloud}: ${line}\n`);
    } catch (error) {
      failed++;
      process.stderr.write(`${cloud}: not renewed: ${(error as Error).message}\n`);
    }
  }
  return failed > 0 ? 1 : 0;
}

process.exitCode = await main().catch((error: unknown) => {
  process.stderr.write(`prices: ${(error as Error).message}\n`);
  return 2;
});
