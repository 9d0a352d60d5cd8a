import { parseUntrustedKubeconfig } from '../kube/kubeconfig.ts';
import { type ObjectMeta, SECRETS } from '../kube/resources.ts';
import { kubeconfig } from '../pki/kubeconfig.ts';
import type { Member, Place, Wanted } from './contract.ts';
import { accountName } from './rights.ts';

/** Where a Secret of a hub is. */
export type SecretPlace = Place & { readonly namespace: string };

export const secretAt = (namespace: string, name: string): SecretPlace => ({
  on: 'hub',
  resource: SECRETS,
  namespace,
  name,
});

/** A Secret of the hub with these texts, by their keys. @param more what else of its metadata is wanted */
export const secretWith = (
  { on, resource, namespace, name }: SecretPlace,
  texts: Readonly<Record<string, string>>,
  more?: Pick<ObjectMeta, 'labels' | 'annotations' | 'ownerReferences'>,
): Wanted => ({
  on,
  resource,
  object: {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace, ...more },
    type: 'Opaque',
    data: Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')])),
  },
});

/** A kubeconfig of the member, by which the hub is who `accountName` says. */
export function kubeconfigOf(member: Member, token: string): string {
  const { server, ca = '', proxyURL } = member.endpoint;
  return kubeconfig({ server, ca, token, proxyURL, name: member.name, user: accountName(member) });
}

/** URL in a kubeconfig; undefined: it is none that we would read. */
export function serverIn(text: string | undefined): string | undefined {
  if (!text) return undefined;
  try {
    return parseUntrustedKubeconfig(text).server;
  } catch {
    return undefined;
  }
}
