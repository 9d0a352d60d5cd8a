import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { load } from 'js-yaml';
import type { CloudProfile } from './cloudprofile.ts';

const DIRECTORY = fileURLToPath(new URL('../../profiles', import.meta.url));

/** CloudProfiles that ship with Coppice (`profiles/*.yaml`), by name. Throws when a file cannot be read. */
export async function profileManifests(directory: string = DIRECTORY): Promise<CloudProfile[]> {
  const files = (await readdir(directory)).filter((file) => file.endsWith('.yaml')).sort();
  return Promise.all(files.map(async (file) => load(await readFile(`${directory}/${file}`, 'utf8')) as CloudProfile));
}

/** The profile with the simulated provider: an embedded garden uses it for clouds without credentials. */
export const simulatedProfile = (profile: CloudProfile): CloudProfile => ({
  ...profile,
  spec: { ...profile.spec, provider: 'simulated' },
});
