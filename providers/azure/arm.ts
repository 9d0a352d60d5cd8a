import { dependencyNotReady } from '../../operator/api/errors.ts';
import { jsonApi } from '../json-api.ts';
import { eachPage } from '../pages.ts';
import { classify } from './errors.ts';

/** Azure's endpoints: https://host, without a trailing slash. */
export interface Endpoints {
  /** Entra ID. */
  login: string;
  /** Azure Resource Manager. */
  management: string;
}

export const PUBLIC_CLOUD: Endpoints = {
  login: 'https://login.microsoftonline.com',
  management: 'https://management.azure.com',
};

/** Calls Entra ID or Azure Resource Manager. */
export const callAzure = jsonApi(classify);

interface Page<T> {
  value?: T[];
  nextLink?: string;
}

/**
 * All pages of a list. The next page is a URL that receives the token: a link to another host is an error, since a
 * partial list would count as complete.
 * @param ask requests one page; undefined: the list does not exist
 */
export async function allPages<T>(
  first: string,
  what: string,
  { management }: Pick<Endpoints, 'management'>,
  ask: (url: string) => Promise<Page<T> | undefined>,
): Promise<T[]> {
  const found: T[] = [];
  await eachPage(what, async (url = first) => {
    const page = await ask(url);
    found.push(...(page?.value ?? []));
    const link = page?.nextLink || undefined;
    // Port and case may be written differently; another scheme is another origin.
    if (link !== undefined && URL.parse(link)?.origin !== new URL(management).origin)
      throw dependencyNotReady(`${what}: the list goes on at another host, which is not asked`);
    return link;
  });
  return found;
}
