import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

/** Libraries that have traps, and the files that know them: all others take those (docs/decisions/0040). */
const WAYS_IN: Record<string, string[]> = {
  croner: ['operator/api/cron.ts'],
  // A certificate has an address in bytes; operator/pki imports nothing of ours.
  'ipaddr.js': ['operator/api/address-range.ts', 'operator/pki/certificates.ts'],
  'prom-client': ['operator/kube/metrics.ts', 'operator/kube/prom-client-parts.d.ts'],
};

it.each(Object.entries(WAYS_IN))('%s is known to nobody but %s', (library, expected) => {
  const files = ['operator', 'providers', 'profiles'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join(folder, name)),
  );
  const importing = new RegExp(`(?:from|import\\(|module) ?'${library.replace('.', '[.]')}(?:/[^']*)?'`);
  expect(files.filter((file) => importing.test(readFileSync(file, 'utf8'))).sort()).toEqual(expected);
});
