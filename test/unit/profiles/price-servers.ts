import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export type Answers = (url: URL, response: ServerResponse, request: IncomingMessage) => void;

/** Serves on loopback until the test ends. Resolves to its base URL. */
export async function serving(answers: Answers): Promise<string> {
  const server = createServer((request, response) =>
    answers(new URL(request.url!, 'http://127.0.0.1'), response, request),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const json = (response: ServerResponse, value: unknown) => response.end(JSON.stringify(value));

/** A row of EC2's price list, by the columns that say what it is. */
export type Ec2Row = Partial<
  Record<'type' | 'price' | 'os' | 'term' | 'tenancy' | 'software' | 'capacity' | 'currency', string>
>;

/** Columns as in the list; what the user guide says of them is cited in profiles/renew/aws.ts. */
const COLUMNS =
  '"SKU","OfferTermCode","RateCode","TermType","PriceDescription","Unit","PricePerUnit","Currency","Product Family","Instance Type","Tenancy","Operating System","CapacityStatus","Pre Installed S/W"';
export const EC2_HEAD = [
  '"FormatVersion","v1.0"',
  '"Disclaimer","This pricing list is for informational purposes only.\nIt may, for example, be ""late""."',
  '"Publication Date","2026-10-01T00:00:00Z"',
  '"Version","20261001000000"',
  '"OfferCode","AmazonEC2"',
  COLUMNS,
].join('\n');

export const ec2Row = ({
  type = 'm5.large',
  price = '0.1150000000',
  os = 'Linux',
  term = 'OnDemand',
  tenancy = 'Shared',
  software = 'NA',
  capacity = 'Used',
  currency = 'USD',
}: Ec2Row): string =>
  `"SKU1","JRTCKXETXF","SKU1.JRTCKXETXF.6YS6EN2CT7","${term}","$${price} per ${term}, ${os} ${type}","Hrs","${price}","${currency}","Compute Instance","${type}","${tenancy}","${os}","${capacity}","${software}"`;

/** The Region index, and a file for each region. */
export const awsLists =
  (regions: Readonly<Record<string, readonly Ec2Row[] | ((response: ServerResponse) => void)>>): Answers =>
  (url, response) => {
    if (url.pathname === '/offers/v1.0/aws/AmazonEC2/current/region_index.json') {
      const entries = Object.keys(regions).map((region) => [
        region,
        { regionCode: region, currentVersionUrl: `/offers/v1.0/aws/AmazonEC2/20261001000000/${region}/index.json` },
      ]);
      json(response, { publicationDate: '2026-10-01T00:00:00Z', regions: Object.fromEntries(entries) });
      return;
    }
    const rows = regions[/\/([^/]+)\/index\.csv$/.exec(url.pathname)?.[1] ?? ''];
    if (typeof rows === 'function') rows(response);
    else if (rows) response.end(`${[EC2_HEAD, ...rows.map(ec2Row)].join('\n')}\n`);
    else response.writeHead(404).end();
  };

export interface RetailItem {
  region: string;
  type: string;
  price: number;
  sku?: string;
  product?: string;
  meter?: string;
  kind?: string;
}

/** Pages of the Azure Retail Prices API, so many items on each; the region is the filter's. */
export const azureLists =
  (items: readonly RetailItem[], { perPage = 2, currency = 'USD' } = {}): Answers =>
  (url, response, { headers }) => {
    const region = /armRegionName eq '([^']+)'/.exec(url.searchParams.get('$filter') ?? '')?.[1];
    const all = items.filter((item) => item.region === region);
    const skip = Number(url.searchParams.get('$skip') ?? 0);
    url.searchParams.set('$skip', String(skip + perPage));
    json(response, {
      BillingCurrency: currency,
      Items: all.slice(skip, skip + perPage).map(({ type, price, sku, product, meter, kind }) => ({
        currencyCode: currency,
        retailPrice: price,
        armRegionName: region,
        armSkuName: type,
        skuName: sku ?? type,
        meterName: meter ?? sku ?? type,
        productName: product ?? 'Virtual Machines Dsv5 Series',
        unitOfMeasure: '1 Hour',
        type: kind ?? 'Consumption',
      })),
      NextPageLink: skip + perPage < all.length ? `http://${headers.host}${url.pathname}${url.search}` : null,
    });
  };

export interface CatalogSku {
  description: string;
  usage?: string;
  regions: string[];
  nanos: number;
  unit: string;
  currency?: string;
}

/** Pages of the Cloud Billing catalog, one SKU on each. */
export const gcpLists =
  (skus: readonly CatalogSku[], key: string): Answers =>
  (url, response) => {
    if (url.searchParams.get('key') !== key) {
      response.writeHead(403).end();
      return;
    }
    const at = Number(url.searchParams.get('pageToken') ?? 0);
    const { description, usage = 'OnDemand', regions, nanos, unit, currency = 'USD' } = skus[at]!;
    json(response, {
      skus: [
        {
          description,
          category: { resourceFamily: 'Compute', resourceGroup: 'CPU', usageType: usage },
          serviceRegions: regions,
          pricingInfo: [
            {
              pricingExpression: {
                usageUnit: unit,
                tieredRates: [{ startUsageAmount: 0, unitPrice: { currencyCode: currency, units: '0', nanos } }],
              },
            },
          ],
        },
      ],
      nextPageToken: at + 1 < skus.length ? String(at + 1) : '',
    });
  };
