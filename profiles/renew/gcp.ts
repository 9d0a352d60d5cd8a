import { parseBytes, parseCpu } from '../../operator/api/quantity.ts';
import { Collected, type Price, type ReadPrices, requestJSON } from './price-list.ts';

const BASE = 'https://cloudbilling.googleapis.com';
/** Compute Engine in the catalog. */
const PATH = '/v1/services/6F81-5844-456A/skus';
const MOST_PAGES = 1000;
const NANOS = 1_000_000_000;

interface Page {
  skus?: Sku[];
  nextPageToken?: string;
}

interface Sku {
  description: string;
  category: { resourceFamily?: string; usageType?: string };
  serviceRegions: string[];
  pricingInfo?: {
    pricingExpression?: {
      usageUnit?: string;
      tieredRates?: { unitPrice?: { currencyCode?: string; units?: string; nanos?: number } }[];
    };
  }[];
}

/** `E2 Instance Core running in Frankfurt`; of a spot machine `Spot Preemptible E2 Instance Core running in Frankfurt`. */
const DESCRIPTION = /^(?:Spot Preemptible )?(\w+) Instance (Core|Ram) running in /;
const UNITS = { Core: 'h', Ram: 'GiBy.h' } as const;
const KINDS: Readonly<Record<string, keyof Price>> = { OnDemand: 'hourly', Preemptible: 'spot' };

/**
 * The Cloud Billing Catalog API, page by page: what a machine costs is its cores and its memory, each by the hour. Shape:
 * cloud.google.com/billing/v1/how-tos/catalog-api. It wants an API key.
 * @param key of a project with the Cloud Billing API
 */
export const readGcp =
  (key: string | undefined): ReadPrices =>
  async (wanted, { base = BASE, today, signal }) => {
    if (!key) throw new Error('the Cloud Billing catalog wants an API key: set COPPICE_GCP_API_KEY');
    const rates = new Map<string, Set<string>>();
    const currencies = new Set<string>();
    let token = '';
    for (let pages = 0; pages === 0 || token !== ''; pages++) {
      if (pages === MOST_PAGES) throw new Error(`${base}${PATH} has no end: not taken`);
      const url = new URL(PATH, base);
      url.searchParams.set('key', key);
      url.searchParams.set('pageSize', '5000');
      url.searchParams.set('currencyCode', 'USD');
      if (token) url.searchParams.set('pageToken', token);
      const page = (await requestJSON(url, signal)) as Page;
      if (!Array.isArray(page.skus)) throw new Error(`${base}${PATH} answers something that is no page of prices`);
      for (const sku of page.skus) noteRate(sku, wanted.regions, rates, currencies);
      token = page.nextPageToken ?? '';
    }
    if (currencies.size > 1) throw new Error(`the list has prices in ${[...currencies].join(' and ')}: not taken`);
    const found = new Collected(wanted);
    for (const { name, cpu, memory } of wanted.machineTypes) {
      const family = name.split('-')[0]!.toUpperCase();
      for (const region of wanted.regions) {
        for (const kind of Object.values(KINDS)) {
          const each = (part: string) => rates.get(`${region} ${family} ${kind} ${part}`) ?? new Set<string>();
          // Every combination: where the list has two rates for one thing, prices differ and none is taken.
          for (const core of each('Core'))
            for (const ram of each('Ram'))
              found.add(
                region,
                name,
                kind,
                (Number(core) * parseCpu(cpu)) / 1000 / NANOS + (Number(ram) * parseBytes(memory)) / 1024 ** 3 / NANOS,
              );
        }
      }
    }
    const [currency = 'USD'] = currencies;
    return {
      source: `on demand and spot: Cloud Billing Catalog API (cloudbilling.googleapis.com, Compute Engine), cores and memory put together, read ${today}.`,
      currency,
      ...found.whole(),
    };
  };

/** Adds what an hour of a core or of a GiB costs, in billionths. */
function noteRate(
  sku: Sku,
  regions: readonly string[],
  rates: Map<string, Set<string>>,
  currencies: Set<string>,
): void {
  const [, family, part] = DESCRIPTION.exec(sku.description) ?? [];
  const kind = KINDS[sku.category.usageType ?? ''];
  if (!family || !part || !kind || sku.category.resourceFamily !== 'Compute') return;
  const expression = sku.pricingInfo?.at(-1)?.pricingExpression;
  const price = expression?.tieredRates?.at(0)?.unitPrice;
  if (!price || expression?.usageUnit !== UNITS[part as keyof typeof UNITS]) return;
  const nanos = Number(price.units ?? '0') * NANOS + (price.nanos ?? 0);
  for (const region of sku.serviceRegions.filter((name) => regions.includes(name))) {
    currencies.add(price.currencyCode ?? 'an unknown currency');
    const key = `${region} ${family.toUpperCase()} ${kind} ${part}`;
    rates.set(key, (rates.get(key) ?? new Set()).add(String(nanos)));
  }
}
