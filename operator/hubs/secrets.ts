import { parseUntrustedKubeconfig } from '../kube/kubeconfig.ts';
import { type ObjectMeta, SECRETS } from '../kube/resources.ts';
import { writeKubeconfigText } from '../pki/kubeconfig.ts';
import type { Member, Place, WantedObject } from './contract.ts';
import { accountName } from './rights.ts';

/** Location of a Secret in a hub. */
export type SecretPlace = Place & { readonly namespace: string };

export const secretAt = (namespace: string, name: string): SecretPlace => ({
  on: 'hub',
  resource: SECRETS,
  namespace,
  name,
});

/** A Secret of the hub with these keys and texts. @param more additional metadata */
export const secretWith = (
  { on, resource, namespace, name }: SecretPlace,
  texts: Readonly<Record<string, string>>,
  more?: Pick<ObjectMeta, 'labels' | 'annotations' | 'ownerReferences'>,
): WantedObject => ({
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

/** A kubeconfig of the member for the hub's ServiceAccount (`accountName`). */
export function kubeconfigOf(member: Member, token: string): string {
  const { server, ca = '', proxyURL } = member.endpoint;
  return writeKubeconfigText({ server, ca, token, proxyURL, name: member.name, user: accountName(member) });
}

/** URL in a kubeconfig; undefined: not a readable kubeconfig. */
export function serverIn(text: string | undefined): string | undefined {
  if (!text) return undefined;
  try {
    return parseUntrustedKubeconfig(text).server;
  } catch {
    return undefined;
  }
}
