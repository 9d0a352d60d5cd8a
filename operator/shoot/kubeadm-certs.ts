import { createCipheriv, createHmac } from 'node:crypto';
import type { KubeObject } from '../api/meta.ts';
import { kubeadmAuthorities } from './kubeadm.ts';
import { keyPair, type PKIData } from './pki.ts';
import { encryptionParts } from './secrets-encryption.ts';

/** Group that kubeadm permits to read what joining machines need (kubeadm's own name). */
export const KUBEADM_JOINERS = 'system:bootstrappers:kubeadm:default-node-token';
/** Secret in kube-system from which kubeadm reads the private keys of the CAs. */
export const KUBEADM_CERTS = 'kubeadm-certs';

/**
 * Key that encrypts the CAs' private keys in that Secret: 32 bytes, hexadecimal. Derived from the cluster's own key and
 * the join token, so it changes with the token, and neither alone reveals it.
 */
export const certificateKeyFor = (pki: PKIData, token: string): string =>
  createHmac('sha256', keyPair(pki, 'ca').key).update(`kubeadm-certs ${token}`).digest('hex');

/** The CA file that carries the encryption keys of Secrets. */
const CARRIER = 'sa.key';
/** PEM block type of the encryption keys; control-plane.sh of cloud machines looks for it. */
const BLOCK = 'SECRETS ENCRYPTION CONFIGURATION';

/**
 * Files that kubeadm copies to joining machines. It copies only the CA files, and only PEM; but it writes a file
 * unchanged, and PEM readers skip unknown block types. So the encryption keys of Secrets are an additional block in one
 * of them.
 */
function filesToBring(pki: PKIData): Record<string, string> {
  const authorities = kubeadmAuthorities(pki);
  const keys = Object.values(encryptionParts(pki, '').files).map((text) => pemBlock(BLOCK, text));
  return { ...authorities, [CARRIER]: [authorities[CARRIER], ...keys].join('') };
}

function pemBlock(type: string, text: string): string {
  const lines = Buffer.from(text)
    .toString('base64')
    .match(/.{1,64}/g)!;
  return [`-----BEGIN ${type}-----`, ...lines, `-----END ${type}-----`, ''].join('\n');
}

/**
 * Objects by which cloud machines join the control plane: the CAs and the encryption keys of Secrets, encrypted as by
 * kubeadm (AES-256-GCM, the nonce before the text; cmd/kubeadm/app/phases/copycerts and util/crypto), and the right to
 * read them and to get the node of the same name. The nonce is derived from key and text, so equal input gives equal
 * objects.
 */
export function joinObjects(pki: PKIData, certificateKey: string): KubeObject[] {
  const key = Buffer.from(certificateKey, 'hex');
  const encrypted = (path: string, text: string): string => {
    const nonce = createHmac('sha256', key).update(`${path}\n${text}`).digest().subarray(0, 12);
    const cipher = createCipheriv('aes-256-gcm', key, nonce);
    return Buffer.concat([nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()]).toString('base64');
  };
  const data = Object.entries(filesToBring(pki)).map(([path, text]) => [
    path.replaceAll('/', '-'),
    encrypted(path, text),
  ]);
  const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: KUBEADM_JOINERS }];
  const name = `kubeadm:${KUBEADM_CERTS}`;
  const metadata = { name, namespace: 'kube-system' };
  return [
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata,
      rules: [{ apiGroups: [''], resources: ['secrets'], resourceNames: [KUBEADM_CERTS], verbs: ['get'] }],
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
      subjects,
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'kubeadm:get-nodes' },
      rules: [{ apiGroups: [''], resources: ['nodes'], verbs: ['get'] }],
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: 'kubeadm:get-nodes' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'kubeadm:get-nodes' },
      subjects,
    },
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: KUBEADM_CERTS, namespace: 'kube-system' },
      type: 'Opaque',
      data: Object.fromEntries(data),
    },
  ];
}
