import { createCipheriv, createHmac } from 'node:crypto';
import type { KubeObject } from '../api/meta.ts';
import { kubeadmAuthorities } from './kubeadm.ts';
import { keyPair, type PKIData } from './pki.ts';
import { encryptionParts } from './secrets-encryption.ts';

/** Group of machines that kubeadm lets read what they need to join (kubeadm's own name for it). */
export const KUBEADM_JOINERS = 'system:bootstrappers:kubeadm:default-node-token';
/** The Secret in kube-system in which kubeadm looks for the authorities' keys. */
export const KUBEADM_CERTS = 'kubeadm-certs';

/**
 * The key by which the authorities' keys are hidden from whoever may read the Secret: 32 bytes, hexadecimal. It comes of the cluster's own
 * key and the token of those who are to join, so it changes with the token, and who knows one of the two does not know it.
 */
export const certificateKeyFor = (pki: PKIData, token: string): string =>
  createHmac('sha256', keyPair(pki, 'ca').key).update(`kubeadm-certs ${token}`).digest('hex');

/** Of the authorities' files, the one that the keys of Secrets come with. */
const CARRIER = 'sa.key';
/** The PEM block that they are; control-plane.sh of machines of a cloud looks for it. */
const BLOCK = 'SECRETS ENCRYPTION CONFIGURATION';

/**
 * What kubeadm brings to machines that join. It brings the authorities' files and no other, and takes PEM alone; but it writes a file as it
 * is, and who reads a key of it passes over blocks of other types. So the keys of Secrets are one more block in one of them.
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
 * What lets machines of a cloud join the control plane: the authorities and the keys of Secrets, encrypted as kubeadm does (AES-256-GCM,
 * the nonce before the text; cmd/kubeadm/app/phases/copycerts and util/crypto), and the right to read them and to look for a node of one's
 * own name. The nonce is made of key and text, so that equal input gives equal objects.
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
