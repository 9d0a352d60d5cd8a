import { digits } from '../digits.ts';
import type { Properties, Reference, ResourceType } from '../model.ts';
import { kindOf, resourceId } from './kinds.ts';

export const list = (value: unknown): any[] => (Array.isArray(value) ? value : value === undefined ? [] : [value]);

/** What it is within, told by the path: names alone are not unique in a subscription. */
export const within = (type: string, inputs: Properties): Reference => ({
  type,
  handle: pathWithin(type, inputs),
  onDelete: 'cascade',
});

/** An id without its subscription. */
export const pathWithin = (type: string, inputs: Properties): string =>
  resourceId(kindOf(type), '', inputs).replace('/subscriptions/', '');

/** The group that it is in: it goes with it. */
export const inGroup = (inputs: Properties): Reference => within('azure-native:resources:ResourceGroup', inputs);

/** A subnet may be a resource of its own or part of its network; its network must be there in any case. */
export const subnetReference = (id: unknown): Reference[] =>
  typeof id === 'string' && id.includes('/subnets/')
    ? [{ type: 'azure-native:network:VirtualNetwork', handle: id.slice(0, id.indexOf('/subnets/')) }]
    : [];

type More = Partial<Omit<ResourceType, 'type'>>;

/** A type whose id follows from its kind. */
export const managed = (type: string, more: More = {}): ResourceType => {
  const kind = kindOf(type);
  return {
    type,
    nameInput: kind.names.at(-1)!,
    immutable: [...kind.names, 'resourceGroupName', 'location'],
    references: (inputs) => (kind.level === undefined && inputs.resourceGroupName ? [inGroup(inputs)] : []),
    ...more,
    region: ({ location }) => (typeof location === 'string' ? location.replaceAll(' ', '').toLowerCase() : undefined),
    id: ({ account, inputs }) => resourceId(kind, account, inputs),
    // An id means one thing wherever it is.
    uniqueBy: (inputs) => resourceId(kind, '', inputs).toLowerCase(),
    outputs: (resource, testbed) => ({
      name: resource.name,
      type: kind.resourceType,
      location: resource.region,
      provisioningState: 'Succeeded',
      etag: `W/"${digits(32, resource.uid, String(resource.generation))}"`,
      azureApiVersion: '2025-09-01',
      ...more.outputs?.(resource, testbed),
    }),
  };
};
