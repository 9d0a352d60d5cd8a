import { csvRows } from './csv.ts';
import { Collected, type ReadPrices, request, requestJSON, unread } from './price-list.ts';

const BASE = 'https://pricing.us-east-1.amazonaws.com';
const REGION_INDEX = '/offers/v1.0/aws/AmazonEC2/current/region_index.json';

/** What is asked of each column; what a list has no column of is not asked. */
const CHOSEN: Readonly<Record<string, string>> = {
  TermType: 'OnDemand',
  Unit: 'Hrs',
  'Product Family': 'Compute Instance',
  'Operating System': 'Linux',
  Tenancy: 'Shared',
  'Pre Installed S/W': 'NA',
  CapacityStatus: 'Used',
  MarketOption: 'OnDemand',
};
/** Without these a file is not what we take it for. */
const NEEDED = ['TermType', 'PricePerUnit', 'Currency', 'Instance Type', 'Operating System', 'Tenancy'];

interface RegionIndex {
  publicationDate?: string;
  regions?: Record<string, { currentVersionUrl?: string }>;
}

/**
 * The AWS Price List Bulk API: a Region index, then a file per region, of which the CSV form is read row by row (it has hundreds of
 * megabytes). Shape: AWS Billing user guide, "Finding services and products by the AWS Price List Bulk API", "Reading the
 * service Region index file" and "Reading the service price list file for an AWS service". Which rows are a Linux machine on demand:
 * the filters of karpenter-provider-aws, pkg/providers/pricing/pricing.go at 1d927085d. There are no spot prices in it.
 */
export const readAws: ReadPrices = async (wanted, { base = BASE, signal }) => {
  const index = (await requestJSON(new URL(REGION_INDEX, base), signal)) as RegionIndex;
  const found = new Collected(wanted);
  const remarks: string[] = [];
  const currencies = new Set<string>();
  for (const region of wanted.regions) {
    const path = index.regions?.[region]?.currentVersionUrl;
    if (path === undefined) {
      remarks.push(`the list has no region ${region}`);
      continue;
    }
    const url = new URL(path.replace(/\.json$/, '.csv'), base);
    if (url.origin !== new URL(base).origin)
      throw new Error(`the list of ${region} is said to be at ${url.origin}: not read`);
    await readRegion(url, signal, (type, price, currency) => {
      currencies.add(currency);
      found.add(region, type, 'hourly', price);
    });
  }
  if (currencies.size > 1) throw new Error(`the list has prices in ${[...currencies].join(' and ')}: not taken`);
  const [currency = 'USD'] = currencies;
  const whole = found.whole();
  const published = index.publicationDate?.slice(0, 10) ?? 'at an unknown date';
  return {
    source: `Linux on demand: AWS Price List Bulk API (pricing.us-east-1.amazonaws.com, offer AmazonEC2), published ${published}. It has no spot prices.`,
    currency,
    prices: whole.prices,
    remarks: [...remarks, ...whole.remarks],
  };
};

type Note = (type: string, price: string, currency: string) => void;

async function readRegion(url: URL, signal: AbortSignal, note: Note): Promise<void> {
  const { body } = await request(url, signal);
  let columns: string[] = [];
  let chosen: [at: number, value: string][] = [];
  try {
    for await (const fields of csvRows(body)) {
      if (columns.length === 0) {
        // Before the names of the columns there are lines about the file.
        if (fields[0] !== 'SKU') continue;
        columns = fields;
        const missing = NEEDED.filter((column) => !columns.includes(column));
        if (missing.length > 0) throw new Error(`it has no column ${missing.join(', ')}`);
        chosen = Object.entries(CHOSEN).flatMap(([column, value]) =>
          columns.includes(column) ? [[columns.indexOf(column), value]] : [],
        );
      } else if (fields.length !== columns.length) {
        throw new Error(`a row has ${fields.length} fields instead of ${columns.length}`);
      } else if (chosen.every(([at, value]) => fields[at] === value)) {
        const field = (column: string) => fields[columns.indexOf(column)]!;
        note(field('Instance Type'), field('PricePerUnit'), field('Currency'));
      }
    }
  } catch (error) {
    throw unread(url, error);
  }
  if (columns.length === 0) throw unread(url, new Error('it has no names of columns'));
}
