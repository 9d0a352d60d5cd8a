import { Collected, type ReadPrices, requestJSON } from './price-list.ts';

const BASE = 'https://prices.azure.com';
const PATH = '/api/retail/prices';
const VERSION = '2023-01-01-preview';
/** Of a thousand items each; a list that goes on for ever is none. */
const MOST_PAGES = 1000;

interface Page {
  BillingCurrency?: string;
  Items?: Item[];
  NextPageLink?: string | null;
}

interface Item {
  retailPrice: number;
  armRegionName: string;
  armSkuName: string;
  skuName: string;
  meterName: string;
  productName: string;
  unitOfMeasure: string;
  type: string;
}

/**
 * The Azure Retail Prices API, page by page. Shape: learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices.
 * Which items are a Linux machine on demand or spot: karpenter-provider-azure, pkg/providers/pricing/pricing.go at 352646f5.
 */
export const readAzure: ReadPrices = async (wanted, { base = BASE, today, signal }) => {
  const found = new Collected(wanted);
  const currencies = new Set<string>();
  for (const region of wanted.regions) {
    const first = new URL(PATH, base);
    first.searchParams.set('api-version', VERSION);
    first.searchParams.set(
      '$filter',
      `serviceName eq 'Virtual Machines' and priceType eq 'Consumption' and armRegionName eq '${region}'`,
    );
    let next: URL | undefined = first;
    for (let pages = 0; next; pages++) {
      if (pages === MOST_PAGES) throw new Error(`${base}${PATH} has no end for ${region}: not taken`);
      const page = (await requestJSON(next, signal)) as Page;
      if (!Array.isArray(page.Items)) throw new Error(`${base}${PATH} answers something that is no page of prices`);
      if (page.Items.length > 0) currencies.add(page.BillingCurrency ?? 'an unknown currency');
      for (const item of page.Items) {
        const isSpot = item.skuName.endsWith(' Spot');
        if (isLinux(item)) found.add(item.armRegionName, item.armSkuName, isSpot ? 'spot' : 'hourly', item.retailPrice);
      }
      next = page.NextPageLink ? new URL(page.NextPageLink) : undefined;
      if (next && next.origin !== first.origin)
        throw new Error(`the next page is said to be at ${next.origin}: not read`);
    }
  }
  if (currencies.size > 1) throw new Error(`the list has prices in ${[...currencies].join(' and ')}: not taken`);
  const [currency = 'USD'] = currencies;
  return {
    source: `Linux on demand and spot: Azure Retail Prices API (prices.azure.com, ${VERSION}), read ${today}.`,
    currency,
    ...found.whole(),
  };
};

const isLinux = ({ type, unitOfMeasure, productName, meterName }: Item): boolean =>
  type === 'Consumption' &&
  unitOfMeasure === '1 Hour' &&
  !productName.endsWith(' Windows') &&
  !meterName.endsWith(' Low Priority');
