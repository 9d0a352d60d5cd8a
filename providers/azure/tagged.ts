import type { CloudContext, TaggedResource } from '../cloud.ts';
import { posted } from '../json-api.ts';
import { eachPage } from '../pages.ts';
import { OWNER_TAGS, ownerOf, POOL_TAG } from '../tags.ts';
import { callAzure, type Endpoints } from './arm.ts';
import { credentialsOf } from './credentials.ts';
import { plainRegion } from './names.ts';
import { entraToken, managementScope } from './token.ts';

/** A row of the answer. */
interface Row {
  id: string;
  type: string;
  location: string;
  tags?: Record<string, string>;
}

/** Resource groups are in a separate table. Azure does not page queries whose columns are all objects. */
const QUERY = [
  'resources',
  "| union (resourcecontainers | where type =~ 'microsoft.resources/subscriptions/resourcegroups')",
  `| where isnotempty(tags['${OWNER_TAGS.technicalID}']) or isnotempty(tags['${OWNER_TAGS.uid}'])`,
  '| project id, type, location, tags',
  '| order by id asc',
].join(' ');

/** Limit of rows per answer (MicrosoftDocs: Azure Resource Graph, "Working with large Azure resource data sets"). */
const PAGE = 1000;

/**
 * Resources in the region with Coppice's tags, by Azure Resource Graph (Resources - Resources, 2021-03-01); changes
 * appear within seconds, sometimes minutes. Resources that AKS creates have the cluster's tags. Azure reports no
 * creation times.
 */
export async function taggedResources(
  ctx: Omit<CloudContext, 'owner'>,
  endpoints: Endpoints,
): Promise<TaggedResource[]> {
  const { subscriptionID } = credentialsOf(ctx.account);
  const { token } = await entraToken(ctx, endpoints, managementScope(endpoints));
  const found: TaggedResource[] = [];
  const what = `resources of subscription ${subscriptionID} cannot be listed`;
  await eachPage(what, async (skipToken) => {
    const page = await callAzure<{ data?: Row[]; $skipToken?: string }>({
      url: `${endpoints.management}/providers/Microsoft.ResourceGraph/resources?api-version=2021-03-01`,
      token,
      ...posted({
        subscriptions: [subscriptionID],
        query: QUERY,
        options: { resultFormat: 'objectArray', $top: PAGE, ...(skipToken && { $skipToken: skipToken }) },
      }),
      what,
      signal: ctx.signal,
    });
    for (const row of page?.data ?? []) {
      const owner = ownerOf(row.tags ?? {});
      if (!owner || plainRegion(row.location) !== plainRegion(ctx.region)) continue;
      const pool = row.tags?.[POOL_TAG];
      found.push({
        id: row.id,
        type: row.type,
        region: plainRegion(row.location),
        owner,
        ...(pool !== undefined && { part: `pool-${pool}` }),
      });
    }
    return page?.$skipToken;
  });
  return found;
}
