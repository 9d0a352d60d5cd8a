import type { KeyPair } from '../pki/certificates.ts';
import { writeKubeconfigText } from '../pki/kubeconfig.ts';
import { keyPair, type PKIData } from './pki.ts';
import { apiServerURL, type ControlPlane, endpointURL, machinesURL, namedURL } from './values.ts';

type KubeconfigValues = Pick<ControlPlane, 'shoot' | 'addresses' | 'endpoint' | 'machinesOutside'>;

/**
 * The kubeconfig in the Secret for programs: group `coppice:admins`, valid for 7 days, renewed daily. Its current
 * context uses the address: a name may not be resolvable (yet) for everybody. Contexts `<cluster>-<key>` use names.
 * @param names hosts that resolve to the endpoint
 */
export const adminKubeconfig = (
  values: KubeconfigValues,
  pki: PKIData,
  names: Readonly<Record<string, string>> = {},
): string => {
  const others = Object.entries(names).map(([key, host]) => ({
    name: `${values.shoot.name}-${key}`,
    server: namedURL(host, values),
  }));
  const pair = keyPair(pki, 'admin');
  return clientKubeconfig(values, pki, pair, 'admin', endpointURL(values), others);
};

/** The operator's own kubeconfig, with a certificate of issueOperatorCertificate. */
export const operatorKubeconfig = (values: KubeconfigValues, pki: PKIData, certificate: KeyPair): string =>
  clientKubeconfig(values, pki, certificate, 'coppice-operator', endpointURL(values));

/** For kube-proxy on the machines. */
export const kubeProxyKubeconfig = (values: KubeconfigValues, pki: PKIData): string =>
  clientKubeconfig(values, pki, keyPair(pki, 'kube-proxy'), 'kube-proxy', machinesURL(values));

/** For a kubelet without a certificate; `token` of a bootstrap token Secret. */
export const bootstrapKubeconfig = (values: KubeconfigValues, pki: PKIData, token: string): string =>
  writeKubeconfigText({
    server: machinesURL(values),
    ca: keyPair(pki, 'ca').cert,
    token,
    name: values.shoot.name,
    user: 'kubelet-bootstrap',
  });

/** A kubeconfig for a client certificate of the shoot; `server` for clients outside the seed. */
export const clientKubeconfig = (
  values: KubeconfigValues,
  pki: PKIData,
  { cert, key }: KeyPair,
  user: string,
  server = apiServerURL(values),
  others: readonly { name: string; server: string }[] = [],
): string =>
  writeKubeconfigText({ server, ca: keyPair(pki, 'ca').cert, cert, key, name: values.shoot.name, user, others });
