import { CoppiceError } from '../../operator/api/errors.ts';
import type { CloudContext } from '../cloud.ts';
import { ownerOf } from '../tags.ts';
import { allPages, callAzure, type Endpoints } from './arm.ts';
import { credentialsOf } from './credentials.ts';
import { resourceGroupName } from './names.ts';
import { entraToken, managementScope } from './token.ts';

interface Tagged {
  id: string;
  tags?: Record<string, string>;
}

/** Limit of names in an error. */
const NAMED = 5;

/**
 * Throws when the owner's resource group contains a resource without the owner's tags: Azure deletes a group with all
 * its contents. To be called once no machine of the owner is left, since machines' disks and interfaces have no tags.
 * (Resources - List By Resource Group, 2021-04-01.)
 */
export async function refuseForeignResources(ctx: CloudContext, endpoints: Endpoints): Promise<void> {
  const { owner, account, signal } = ctx;
  const name = resourceGroupName(owner);
  const path = `/subscriptions/${credentialsOf(account).subscriptionID}/resourceGroups/${name}`;
  const { token } = await entraToken(ctx, endpoints, managementScope(endpoints));
  const ask = <T>(url: string) =>
    callAzure<T>({ url, token, what: `resource group ${name} cannot be looked into`, signal }, { absent: true });
  const isOwners = ({ tags = {} }: Pick<Tagged, 'tags'>): boolean => ownerOf(tags)?.uid === owner.uid;

  const group = await ask<Tagged>(`${endpoints.management}${path}?api-version=2021-04-01`);
  if (!group || !isOwners(group)) return;
  const first = `${endpoints.management}${path}/resources?api-version=2021-04-01`;
  const all = await allPages<Tagged>(
    first,
    `what else is in resource group ${name} cannot be asked for`,
    endpoints,
    ask,
  );
  const foreign = all.filter((one) => !isOwners(one)).map(({ id }) => id);
  if (foreign.length === 0) return;
  const more = foreign.length > NAMED ? ` and ${foreign.length - NAMED} more` : '';
  throw new CoppiceError(
    'ERR_INFRA_DEPENDENCIES',
    `resource group ${name} would go with what is not tagged as the cluster's: ${foreign.slice(0, NAMED).join(', ')}${more}`,
    {
      advice:
        'Move it to another group or delete it; what was deleted just now is shown for some minutes: sweep again then.',
    },
  );
}
