import { dependencyNotReady } from '../../operator/api/errors.ts';
import { jsonApi } from '../json-api.ts';
import { eachPage } from '../pages.ts';
import { classify } from './errors.ts';

/** Where Azure is: https://host, without a slash at the end. */
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
 * Everything of a list, page by page. Azure names the next page by a URL, and whoever is asked for it gets the token: a link
 * to another host is an error, for half a list would be taken for all of it.
 * @param ask for one page; undefined: there is no such list
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
    // Ports and capitals are written in several ways; a scheme without encryption is another origin.
    if (link !== undefined && URL.parse(link)?.origin !== new URL(management).origin)
      throw dependencyNotReady(`${what}: the list goes on at another host, which is not asked`);
    return link;
  });
  return found;
}
