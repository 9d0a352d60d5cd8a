import type { Member, Reader, WantedObject } from '../../../operator/hubs/contract.ts';
import { decodeSecret, type KubeObject, keyOf, type Resource } from '../../../operator/kube/resources.ts';

/** Cluster shop/demo on its way into Hub `fleet`. */
export const member = (more: Partial<Member> = {}): Member => ({
  name: 'shop--demo',
  hubName: 'fleet',
  cluster: { namespace: 'shop', name: 'demo' },
  id: 'uid-of-kube-system',
  endpoint: { server: 'https://demo.example.com:6443', ca: 'CA' },
  hub: { server: 'https://hub.example.com', ca: 'HUB CA' },
  labels: { tier: 'gold' },
  zones: [],
  version: '1.36.3',
  nodeSizes: [],
  capacity: { cpu: '4', memory: '8Gi' },
  answers: true,
  credentials: { access: { token: 'token-of-demo' } },
  ...more,
});

/** A hub in which these objects are, by plural of their kind. */
export const reader = (objects: Readonly<Record<string, readonly KubeObject[]>>): Reader => ({
  get: async ({ plural }: Resource, name, namespace = '') =>
    objects[plural]?.find((one) => keyOf(one) === (namespace ? `${namespace}/${name}` : name)),
  list: async ({ plural }: Resource, options = {}) =>
    (objects[plural] ?? []).filter(({ metadata }) => !options.namespace || metadata.namespace === options.namespace),
  serves: async ({ plural }: Resource) => plural in objects,
});

/** What is under this key of a Secret. */
export const textOf = (wanted: WantedObject | undefined, key: string): string =>
  decodeSecret(wanted?.object.data as Record<string, string> | undefined)[key] ?? '';
