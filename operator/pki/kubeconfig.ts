import { dump } from 'js-yaml';

/**
 * A kubeconfig with one cluster, one user and one context; `others` add contexts for the same API server. `ca`, `cert`,
 * `key` are PEM.
 */
interface KubeconfigParameters {
  server: string;
  ca: string;
  cert?: string;
  key?: string;
  token?: string;
  /** In place of a token: path of a file that the client rereads regularly. */
  tokenFile?: string;
  /** Name of the cluster and of the context. */
  name: string;
  user: string;
  namespace?: string;
  /** Proxy to the API server. */
  proxyURL?: string | undefined;
  /** Further clusters and contexts: the same API server at other URLs. */
  others?: readonly { name: string; server: string }[];
}

/** A kubeconfig as YAML, with certificates and keys inline. */
export function writeKubeconfigText(parameters: KubeconfigParameters): string {
  const { server, ca, cert, key, token, tokenFile, name, user, namespace, proxyURL, others = [] } = parameters;
  const ways = [{ name, server }, ...others];
  return dump(
    {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: ways.map((way) => ({
        name: way.name,
        cluster: {
          server: way.server,
          'certificate-authority-data': base64(ca),
          ...(proxyURL && { 'proxy-url': proxyURL }),
        },
      })),
      users: [
        {
          name: user,
          user: {
            ...(cert && { 'client-certificate-data': base64(cert) }),
            ...(key && { 'client-key-data': base64(key) }),
            ...(token && { token }),
            ...(tokenFile && { tokenFile }),
          },
        },
      ],
      contexts: ways.map((way) => ({
        name: way.name,
        context: { cluster: way.name, user, ...(namespace && { namespace }) },
      })),
      'current-context': name,
    },
    { lineWidth: -1 },
  );
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
