import { describe, expect, it } from 'vitest';
import { readAws } from '../../../profiles/renew/aws.ts';
import { readAzure } from '../../../profiles/renew/azure.ts';
import { csvRows } from '../../../profiles/renew/csv.ts';
import { readGcp } from '../../../profiles/renew/gcp.ts';
import { decimal, type PriceList, type Wanted } from '../../../profiles/renew/price-list.ts';
import { awsLists, azureLists, EC2_HEAD, ec2Row, gcpLists, serving } from './price-servers.ts';

const FRANKFURT: Wanted = {
  regions: ['eu-central-1'],
  machineTypes: [
    { name: 'm5.large', cpu: '2', memory: '8Gi' },
    { name: 'm5.xlarge', cpu: '4', memory: '16Gi' },
  ],
};
const options = (base: string) => ({ base, today: '2026-11-21', signal: new AbortController().signal });
const shown = ({ prices }: PriceList) =>
  Object.fromEntries([...prices].map(([region, types]) => [region, Object.fromEntries(types)]));

describe('CSV rows', () => {
  it('are parsed for any chunks of the text', async () => {
    const text = 'a,"b, ""c""\nd",\r\n"ü",,e\nlast';
    const bytes = new TextEncoder().encode(text);
    for (let size = 1; size <= bytes.length; size++) {
      const pieces = async function* () {
        for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
      };
      const rows: string[][] = [];
      for await (const row of csvRows(pieces())) rows.push(row);
      expect(rows).toEqual([['a', 'b, "c"\nd', ''], ['ü', '', 'e'], ['last']]);
    }
  });
});

describe('the decimal price', () => {
  it.each([
    ['0.0960000000', '0.096'],
    [0.115, '0.115'],
    ['12', '12'],
    [0.0863364, '0.086336'],
    ['10', '10'],
    [1e-9, undefined],
    ['0.0000000000', undefined],
    ['', undefined],
    ['free', undefined],
    [Number.NaN, undefined],
  ])('of %o is %s', (value, text) => {
    expect(decimal(value)).toBe(text);
  });
});

describe('the AWS price list', () => {
  it('contributes on-demand prices of Linux machines only', async () => {
    const base = await serving(
      awsLists({
        'eu-central-1': [
          {},
          { os: 'Windows', price: '0.2' },
          { term: 'Reserved', price: '0.05' },
          { tenancy: 'Dedicated', price: '0.122' },
          { software: 'SQL Std', price: '0.6' },
          { capacity: 'UnusedCapacityReservation', price: '0.119' },
          { type: 'm5.xlarge', price: '0.2300000000' },
          { type: 'x9.huge', price: '9' },
        ],
      }),
    );
    const list = await readAws({ ...FRANKFURT, regions: ['eu-central-1', 'moon-1'] }, options(base));
    expect(shown(list)).toEqual({
      'eu-central-1': { 'm5.large': { hourly: '0.115' }, 'm5.xlarge': { hourly: '0.23' } },
    });
    expect(list).toMatchObject({ currency: 'USD', remarks: ['the list has no region moon-1'] });
    expect(list.source).toContain('published 2026-10-01');
  });

  it('has no price for a machine with two different ones, and reports it', async () => {
    const base = await serving(awsLists({ 'eu-central-1': [{}, { price: '0.3' }, { type: 'm5.xlarge' }] }));
    const list = await readAws(FRANKFURT, options(base));
    expect(list.prices.get('eu-central-1')?.get('m5.large')).toEqual({});
    expect(list.remarks.join()).toContain('different prices (hourly) of m5.large in eu-central-1');
  });

  it('has one currency, and is refused with several', async () => {
    const base = await serving(awsLists({ 'eu-central-1': [{ currency: 'CNY' }] }));
    expect((await readAws(FRANKFURT, options(base))).currency).toBe('CNY');
    const mixed = await serving(awsLists({ 'eu-central-1': [{ currency: 'CNY' }, { type: 'm5.xlarge' }] }));
    await expect(readAws(FRANKFURT, options(mixed))).rejects.toThrow('prices in CNY and USD: not taken');
  });

  it.each<[string, (body: string) => { head?: Record<string, string>; body: string }, RegExp]>([
    ['breaks off', (body) => ({ head: { 'content-length': '100000' }, body }), /index\.csv cannot be read to its end/],
    [
      'ends in the middle of a row',
      (body) => ({ body: body.slice(0, -40) }),
      /to its end: a row has \d+ fields instead of 14/,
    ],
    ['is something else', () => ({ body: '<html>\n<p>sign in</p>\n' }), /it has no names of columns/],
    ['has other columns', () => ({ body: '"SKU","Price"\n"a","1"\n' }), /it has no column TermType, PricePerUnit/],
  ])('is refused with a one-line error if it %s', async (_, made, message) => {
    const { head = {}, body } = made(`${EC2_HEAD}\n${ec2Row({})}\n${ec2Row({ type: 'm5.xlarge' })}`);
    const base = await serving(
      awsLists({
        'eu-central-1': (response) => {
          response.writeHead(200, head);
          response.write(body, () => (head['content-length'] ? response.destroy() : response.end()));
        },
      }),
    );
    const failure = await readAws(FRANKFURT, options(base)).catch((error: Error) => error.message);
    expect(failure).toMatch(message);
    expect(failure).not.toContain('\n');
  });

  it('that names another host is not read', async () => {
    const base = await serving((_, response) => {
      const currentVersionUrl = 'http://169.254.169.254/latest/index.json';
      response.end(JSON.stringify({ regions: { 'eu-central-1': { currentVersionUrl } } }));
    });
    await expect(readAws(FRANKFURT, options(base))).rejects.toThrow('said to be at http://169.254.169.254: not read');
  });
});

describe('the Azure price list', () => {
  const wanted: Wanted = {
    regions: ['westeurope'],
    machineTypes: [{ name: 'Standard_D2s_v5', cpu: '2', memory: '8Gi' }],
  };
  const item = { region: 'westeurope', type: 'Standard_D2s_v5', price: 0.115 };
  const items = [
    { ...item, price: 0.207, product: 'Virtual Machines Dsv5 Series Windows' },
    { ...item, price: 0.023, sku: 'D2s v5 Low Priority' },
    { ...item, price: 0.07, kind: 'Reservation' },
    item,
    { ...item, price: 0.021, sku: 'D2s v5 Spot' },
  ];

  it('is read in pages, for Linux machines on demand and spot', async () => {
    const list = await readAzure(wanted, options(await serving(azureLists(items))));
    expect(shown(list)).toEqual({ westeurope: { Standard_D2s_v5: { hourly: '0.115', spot: '0.021' } } });
    expect(list.source).toContain('read 2026-11-21');
  });

  it('names its currency', async () => {
    const list = await readAzure(wanted, options(await serving(azureLists(items, { currency: 'EUR' }))));
    expect(list.currency).toBe('EUR');
  });

  it('with a missing page is refused', async () => {
    const answers = azureLists(items);
    const base = await serving((url, response, request) => {
      if (url.searchParams.get('$skip') === '4') response.writeHead(429).end();
      else answers(url, response, request);
    });
    await expect(readAzure(wanted, options(base))).rejects.toThrow(/\/api\/retail\/prices answers 429$/);
  });
});

describe('the Google price list', () => {
  const wanted: Wanted = {
    regions: ['europe-west3'],
    machineTypes: [{ name: 'e2-standard-2', cpu: '2', memory: '8Gi' }],
  };
  const core = {
    description: 'E2 Instance Core running in Frankfurt',
    regions: ['europe-west3'],
    nanos: 28_103_000,
    unit: 'h',
  };
  const ram = { ...core, description: 'E2 Instance Ram running in Frankfurt', nanos: 3_766_250, unit: 'GiBy.h' };
  const skus = [
    core,
    ram,
    { ...core, usage: 'Commit1Yr', nanos: 1 },
    { ...core, description: 'E2 Custom Instance Core running in Frankfurt', nanos: 1 },
    {
      ...core,
      description: 'Spot Preemptible E2 Instance Core running in Frankfurt',
      usage: 'Preemptible',
      nanos: 10_000_000,
    },
    {
      ...ram,
      description: 'Spot Preemptible E2 Instance Ram running in Frankfurt',
      usage: 'Preemptible',
      nanos: 1_000_000,
    },
    { ...core, description: 'E2 Instance Core running in Americas', regions: ['us-central1'], nanos: 5 },
  ];

  it('adds the prices of cores and memory', async () => {
    const list = await readGcp('k')(wanted, options(await serving(gcpLists(skus, 'k'))));
    expect(shown(list)).toEqual({ 'europe-west3': { 'e2-standard-2': { hourly: '0.086336', spot: '0.028' } } });
  });

  it('has no price for a machine with an unpriced part', async () => {
    const list = await readGcp('k')(wanted, options(await serving(gcpLists([core], 'k'))));
    expect(shown(list)).toEqual({});
  });

  it('requires an API key, and never shows it', async () => {
    await expect(readGcp(undefined)(wanted, options('http://127.0.0.1:1'))).rejects.toThrow('set COPPICE_GCP_API_KEY');
    const base = await serving(gcpLists(skus, 'k'));
    const failure = await readGcp('hush-hush')(wanted, options(base)).catch((error: Error) => error.message);
    expect(failure).toMatch(/answers 403$/);
    expect(failure).not.toContain('hush-hush');
  });
});
