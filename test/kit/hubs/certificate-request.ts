import '../../../operator/pki/reflect.ts';

import { webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import type { CertificateSigningRequest } from '../../../operator/kube/resources.ts';

const USERS = 'system:open-cluster-management';
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** What a CertificateSigningRequest carries for a certificate of this subject. */
export async function certificateRequest(commonNames: string[], organizations: string[]): Promise<string> {
  x509.cryptoProvider.set(webcrypto as never);
  const keys = (await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])) as never;
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: [...organizations.map((name) => ({ O: [name] })), ...commonNames.map((name) => ({ CN: [name] }))],
    keys,
    signingAlgorithm: ALGORITHM,
  });
  return Buffer.from(request.toString('pem')).toString('base64');
}

/** As an agent of this cluster asks in Open Cluster Management. */
export async function agentRequest(cluster: string, agent: string): Promise<CertificateSigningRequest> {
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: {
      name: `${cluster}-${agent.slice(0, 5)}`,
      labels: { 'open-cluster-management.io/cluster-name': cluster },
    },
    spec: {
      request: await certificateRequest(
        [`${USERS}:${cluster}:${agent}`],
        [`${USERS}:${cluster}`, `${USERS}:managed-clusters`],
      ),
      signerName: 'kubernetes.io/kube-apiserver-client',
      usages: ['digital signature', 'key encipherment', 'client auth'],
    },
  };
}
