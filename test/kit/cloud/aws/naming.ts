import { digits } from '../digits.ts';
import type { Draft, Properties, ResourceType } from '../model.ts';

/** `vpc-0123456789abcdef0`: as EC2 numbers things. */
export const numbered =
  (prefix: string) =>
  ({ uid }: Pick<Draft, 'uid'>): string =>
    `${prefix}-0${uid.slice(0, 16)}`;

/** arn:aws:service:region:account:resource; IAM's have no region. */
export const arn = (
  { region, account }: { region: string; account: string },
  service: string,
  resource: string,
): string => `arn:aws:${service}:${region === 'global' ? '' : region}:${account}:${resource}`;

/** A UUID that is the resource's own. */
export const uuid = (...words: string[]): string =>
  digits(32, ...words).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

/** IAM's unique ids: four letters of the kind, then capitals and digits. */
export const iamId = (prefix: string, uid: string): string => `${prefix}${digits(17, uid).toUpperCase()}`;

export const list = (value: unknown): any[] => (Array.isArray(value) ? value : value === undefined ? [] : [value]);

/** A type that needs little saying. */
export const simple = (type: string, more: Partial<ResourceType> & Pick<ResourceType, 'id'>): ResourceType => ({
  type,
  immutable: [],
  outputs: () => ({}),
  ...more,
});

/** Set of a string property, for uniqueBy. */
export const joined = (inputs: Properties, ...names: string[]): string =>
  names.map((name) => inputs[name] ?? '').join('|');
