import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { load } from 'js-yaml';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import type { Price, PriceList } from '../../../profiles/renew/price-list.ts';
import { renew } from '../../../profiles/renew/rewrite.ts';
import { awsLists, EC2_HEAD, ec2Row, serving } from './price-servers.ts';

const PROFILES = fileURLToPath(new URL('../../../profiles', import.meta.url));
const MAIN = join(PROFILES, 'renew/main.ts');
const shipped = (cloud: string) => readFileSync(join(PROFILES, `${cloud}.yaml`), 'utf8');

const TEXT = `# Sources:
# - CPU, memory: a list.
# - Prices: a table
#   of long ago.
# - Zones: another list.
kind: CloudProfile
metadata: {name: cloud}
spec:
  defaults: {region: here, machineType: small}
  machineTypes:
    # The usual one.
    - {name: small, cpu: '2', memory: 8Gi, price: {hourly: '0.1', currency: USD, region: here,
        regions: [{name: there, hourly: '0.12'}]}}
    - {name: large, cpu: '8', memory: 32Gi, price: {hourly: '0.4', currency: USD, region: here}} # for builds
    - {name: huge, cpu: '16', memory: 64Gi}
  regions:
    - name: here
    - name: there
`;

const listOf = (prices: Record<string, Record<string, Price>>, more: Partial<PriceList> = {}): PriceList => ({
  source: 'the new list, of 2026-10-01.',
  currency: 'USD',
  prices: new Map(Object.entries(prices).map(([region, types]) => [region, new Map(Object.entries(types))])),
  remarks: [],
  ...more,
});
const WHOLE = {
  here: { small: { hourly: '0.11' }, large: { hourly: '0.4', spot: '0.1' }, huge: { hourly: '0.8' } },
  there: { small: { hourly: '0.12' }, huge: { hourly: '0.9' } },
};

describe('a CloudProfile with renewed prices', () => {
  it("has the list's prices and source, and is otherwise unchanged", () => {
    const { text, changed, remarks } = renew(TEXT, listOf(WHOLE));
    expect(text).toBe(`# Sources:
# - CPU, memory: a list.
# - Prices: the new list, of 2026-10-01.
# - Zones: another list.
kind: CloudProfile
metadata: {name: cloud}
spec:
  defaults: {region: here, machineType: small}
  machineTypes:
    # The usual one.
    - {name: small, cpu: '2', memory: 8Gi, price: {hourly: '0.11', currency: USD, region: here,
        regions: [{name: there, hourly: '0.12'}]}}
    - {name: large, cpu: '8', memory: 32Gi, price: {hourly: '0.4', spot: '0.1', currency: USD, region: here}} # for builds
    - {name: huge, cpu: '16', memory: 64Gi, price: {hourly: '0.8', currency: USD, region: here,
        regions: [{name: there, hourly: '0.9'}]}}
  regions:
    - name: here
    - name: there
`);
    expect({ changed, remarks }).toEqual({ changed: 4, remarks: [] });
    expect(renew(text, listOf(WHOLE))).toEqual({ text, changed: 0, remarks: [] });
  });

  it('keeps a price that the list lacks, under its old source, and reports it', () => {
    const { here, there } = WHOLE;
    const { text, remarks } = renew(TEXT, listOf({ here: { small: here.small, huge: here.huge }, there }));
    expect(remarks).toEqual(['large in here: the list has none, 0.4 stays']);
    expect(text).toContain("price: {hourly: '0.4', currency: USD, region: here}} # for builds");
    const sources = `# - Prices: the new list, of 2026-10-01.
# - Prices that the list above does not have: a table of long ago.
# - Zones`;
    expect(text).toContain(sources);
    const again = renew(text, listOf({ here: { small: here.small, huge: here.huge }, there }));
    expect(again.text).toContain('# - Prices that the list above does not have: a table of long ago.\n# - Zones');
  });

  it('has no price that neither the list nor the old profile has', () => {
    const { text, remarks } = renew(
      TEXT,
      listOf({ here: { small: { hourly: '0.1' }, large: { hourly: '0.4' } }, there: WHOLE.there }),
    );
    expect(remarks).toEqual([]);
    expect(text).toContain(
      "- {name: huge, cpu: '16', memory: 64Gi, price: {hourly: '0.9', currency: USD, region: there}}",
    );
    const none = renew(TEXT, listOf({ here: WHOLE.here, there: { small: { hourly: '1' } } }));
    expect(none.text).toContain("memory: 64Gi, price: {hourly: '0.8', currency: USD, region: here}}");
    const nobody = renew(
      TEXT,
      listOf({ here: { small: { hourly: '1' }, large: { hourly: '2' } }, there: { small: { hourly: '1' } } }),
    );
    expect(nobody.text).toContain("- {name: huge, cpu: '16', memory: 64Gi}\n");
    expect(nobody.remarks).toEqual(['huge: the list has no price of it, and there was none']);
  });

  it.each<[string, string, PriceList, string]>([
    ['in another currency', TEXT, listOf(WHOLE, { currency: 'EUR' }), 'the list is in EUR, the price of small in USD'],
    [
      'that is half of one',
      TEXT,
      listOf({ here: WHOLE.here }),
      'has 0 of 1 machine types in there: it is taken for half a list',
    ],
    ['that is empty', TEXT, listOf({}), 'has 0 of 2 machine types in here'],
    [
      'for what is written otherwise',
      TEXT.replace("- {name: small, cpu: '2',", "- {name: small, # first\n       cpu: '2',"),
      listOf(WHOLE),
      'how small is written in the profile cannot be rewritten by a program',
    ],
  ])('does not accept a list %s', (_, text, list, message) => {
    expect(() => renew(text, list)).toThrow(message);
  });

  it.each(['aws', 'azure', 'gcp'])('can be made from the shipped profile of %s', (cloud) => {
    const before = load(shipped(cloud)) as CloudProfile;
    const types = Object.fromEntries(
      before.spec.machineTypes.map(({ name }) => [name, { hourly: '1.5', spot: '0.5' }]),
    );
    const prices = Object.fromEntries(before.spec.regions.map(({ name }) => [name, types]));
    const { text, remarks } = renew(shipped(cloud), listOf(prices));
    expect(remarks).toEqual([]);
    const after = load(text) as CloudProfile;
    for (const { price } of after.spec.machineTypes) {
      expect(price).toMatchObject({ hourly: '1.5', spot: '0.5', currency: 'USD' });
      expect(price!.regions).toHaveLength(before.spec.regions.length - 1);
    }
    expect(text.match(/^# - Prices.*$/gm)).toEqual(['# - Prices: the new list, of 2026-10-01.']);
  });
});

/** Runs the command on a copy of the profiles. */
function command(args: string[], node: string[] = []) {
  const directory = mkdtempSync(join(tmpdir(), 'coppice-prices-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  for (const file of readdirSync(PROFILES).filter((name) => name.endsWith('.yaml')))
    cpSync(join(PROFILES, file), join(directory, file));
  const child = spawn(process.execPath, [...node, MAIN, ...args, '--directory', directory], { env: { PATH: '' } });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
  }
  return new Promise<{ code: number | null; said: string; profile: (cloud: string) => string }>((resolve) =>
    child.once('close', (code) => {
      const profile = (cloud: string) => readFileSync(join(directory, `${cloud}.yaml`), 'utf8');
      resolve({ code, said, profile });
    }),
  );
}

describe('npm run prices', () => {
  it('reports unreachable lists in one line each, and leaves their profiles unchanged', async () => {
    const { code, said, profile } = await command([
      '--from',
      'aws=http://127.0.0.1:1',
      '--from',
      'azure=http://127.0.0.1:1',
    ]);
    expect(code).toBe(1);
    expect(said.trim().split('\n').sort()).toEqual([
      expect.stringMatching(/^aws: not renewed: http:\/\/127\.0\.0\.1:1\/offers\/.* cannot be read to its end: /),
      expect.stringMatching(
        /^azure: not renewed: http:\/\/127\.0\.0\.1:1\/api\/retail\/prices cannot be read to its end: /,
      ),
      'gcp: not renewed: the Cloud Billing catalog wants an API key: set COPPICE_GCP_API_KEY',
    ]);
    for (const cloud of ['aws', 'azure', 'gcp']) expect(profile(cloud)).toBe(shipped(cloud));
  });

  it('reads a list of many megabytes in little memory', { timeout: 120_000 }, async () => {
    const spec = (load(shipped('aws')) as CloudProfile).spec;
    const rows = spec.machineTypes.map(({ name }) => ec2Row({ type: name, price: '0.5' })).join('\n');
    const filler = `${ec2Row({ os: 'Windows', type: 'x9.huge' })}\n`.repeat(2000);
    const regions = Object.fromEntries(
      spec.regions.map(({ name }, index) => [
        name,
        (response: ServerResponse) => {
          response.write(`${EC2_HEAD}\n`);
          // One of them is 40 MB, more than the process may have.
          let left = index === 0 ? 100 : 1;
          const more = () => {
            while (left-- > 0) if (!response.write(filler)) return void response.once('drain', more);
            response.end(`${rows}\n`);
          };
          more();
        },
      ]),
    );
    const base = await serving(awsLists(regions));
    const { code, said, profile } = await command(['aws', '--from', `aws=${base}`], ['--max-old-space-size=32']);
    expect(said).toMatch(/^aws: \d+ prices changed\naws: the list has no spot prices: \d+ stay as they are\n$/);
    expect(code).toBe(0);
    expect(profile('aws')).toContain('# - Prices: Linux on demand: AWS Price List Bulk API');
    const { machineTypes } = (load(profile('aws')) as CloudProfile).spec;
    expect(machineTypes.map(({ price }) => price?.hourly)).toEqual(machineTypes.map(() => '0.5'));
  });
});
