import { jsonApi } from '../json-api.ts';
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

/** The link if it leads where the token belongs. */
export const sameHost = (link: string | undefined, { management }: Endpoints): string | undefined =>
  link?.startsWith(`${management}/`) ? link : undefined;

/** Calls Entra ID or Azure Resource Manager. */
export const call = jsonApi(classify);
