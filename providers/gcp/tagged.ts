import type { CloudContext, Owner, TaggedResource } from '../cloud.ts';
import { eachPage } from '../pages.ts';
import { OWNER_TAGS } from '../tags.ts';
import { credentialsOf } from './credentials.ts';
import { callGoogle, type Endpoints } from './google-api.ts';
import { DESCRIPTION, ownerOfDescription, ownerOfLabels } from './labels.ts';
import { computeName } from './names.ts';
import { accessToken } from './token.ts';

/** The fields of google.cloud.asset.v1's ResourceSearchResult that are read. */
interface Found {
  name: string;
  assetType: string;
  location?: string;
  labels?: Record<string, string>;
  description?: string;
  createTime?: string;
  additionalAttributes?: { machineType?: unknown };
}

/** Maximum page size. */
const PAGE = 500;

/** Cannot be deleted at Google, and cost nothing once their versions are destroyed: they would be orphans for ever. */
const ENDLESS = ['cloudkms.googleapis.com/CryptoKey'];

/** Matches Coppice's label or description; false matches are dropped below. */
const QUERY = `labels.${OWNER_TAGS.uid}:* OR description:"${DESCRIPTION}"`;

/**
 * Coppice's resources in Cloud Asset Inventory in the region, its zones, or global (networks, service accounts); the
 * same resource may appear for several regions. Changes may take minutes to appear.
 */
export async function taggedResources(
  ctx: Omit<CloudContext, 'owner'>,
  endpoints: Endpoints,
): Promise<TaggedResource[]> {
  const { project } = credentialsOf(ctx.account, ctx.profile);
  const { token } = await accessToken(ctx, endpoints);
  const found: Found[] = [];
  const what = `resources of project ${project} cannot be listed`;
  await eachPage(what, async (page) => {
    const query = new URLSearchParams({ query: QUERY, pageSize: String(PAGE), ...(page && { pageToken: page }) });
    const answer = await callGoogle<{ results?: Found[]; nextPageToken?: string }>({
      url: `${endpoints.cloudAsset}/v1/projects/${project}:searchAllResources?${query}`,
      token,
      what,
      signal: ctx.signal,
    });
    found.push(...(answer?.results ?? []));
    return answer?.nextPageToken;
  });
  return found.flatMap((one) => taggedResource(one, ctx.region));
}

const isGlobal = (location = 'global'): boolean => location === 'global';
const isIn = (region: string, location?: string): boolean =>
  isGlobal(location) || location === region || location!.startsWith(`${region}-`);

/** Resources without labels, whose pool is part of their name only. */
const POOLED: Readonly<Record<string, { part: string; name: RegExp }>> = {
  'compute.googleapis.com/InstanceGroupManager': { part: 'pool', name: /^(.+)$/ },
  'compute.googleapis.com/InstanceTemplate': { part: 'template', name: /^(.+)-[0-9a-f]+$/ },
};

function partOf(assetType: string, name: string, { technicalID }: Partial<Owner>): Pick<TaggedResource, 'part'> {
  const pooled = POOLED[assetType];
  if (!pooled || technicalID === undefined) return {};
  // Long technical IDs are truncated, depending on the length of the pool's name.
  const ends = [...name.matchAll(/-/g)].map(({ index }) => name.slice(index + 1));
  const own = ends.find((end) => computeName({ technicalID }, end) === name);
  const pool = own && pooled.name.exec(own)?.[1];
  return pool ? { part: `${pooled.part}-${pool}` } : {};
}

function taggedResource({ name, assetType, location, createTime, ...found }: Found, region: string): TaggedResource[] {
  if (!isIn(region, location) || ENDLESS.includes(assetType)) return [];
  const owner = ownerOfLabels(found.labels ?? {}) ?? ownerOfDescription(found.description ?? '');
  if (!owner) return [];
  const machineType = found.additionalAttributes?.machineType;
  return [
    {
      id: name,
      type: assetType,
      region: isGlobal(location) ? 'global' : region,
      owner,
      ...partOf(assetType, name.split('/').at(-1)!, owner),
      ...(typeof machineType === 'string' && { machineType: machineType.split('/').at(-1)! }),
      ...(createTime !== undefined && { createdAt: createTime }),
    },
  ];
}
