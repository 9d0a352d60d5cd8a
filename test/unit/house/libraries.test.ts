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

const files = ['operator', 'providers', 'profiles'].flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(folder, name)),
);
const filesWith = (text: RegExp) => files.filter((file) => text.test(readFileSync(file, 'utf8'))).sort();

it.each(Object.entries(WAYS_IN))('library %s is imported only by %s', (library, expected) => {
  const importing = new RegExp(`(?:from|import\\(|module) ?'${library.replace('.', '[.]')}(?:/[^']*)?'`);
  expect(filesWith(importing)).toEqual(expected);
});

it("foreign YAML is read by operator/kube/yaml.ts; other files read Coppice's own files", () => {
  expect(filesWith(/\bload(All)?\b[^}]*\}.*'js-yaml'/)).toEqual([
    'operator/api/profiles.ts',
    'operator/cli/reference.ts',
    'operator/garden/daemon/inventory.ts',
    'operator/garden/daemon/manifests.ts',
    'operator/kube/yaml.ts',
    'operator/release/main.ts',
    'profiles/renew/main.ts',
    'profiles/renew/rewrite.ts',
  ]);
});

it('the shared temporary folder is used for new folders only, or in a pod', () => {
  const used = /\btmpdir\(\)/;
  expect(filesWith(used)).toEqual([
    'operator/controllers/backup/take-snapshot.ts',
    'operator/garden/toolchain/pulumi-engine.ts',
  ]);
});
