import './reflect.ts';

import { createPublicKey, type KeyObject } from 'node:crypto';
import * as x509 from '@peculiar/x509';

const CURVES: readonly (string | undefined)[] = ['prime256v1', 'secp384r1', 'secp521r1'];
const RSA_BITS = { least: 2048, most: 8192 };

/**
 * Public key of a certificate request, if the requester proved possession of the private key and the key is strong
 * enough.
 * @param request PEM of PKCS#10
 */
export async function requestedKey(request: string): Promise<KeyObject | undefined> {
  try {
    const parsed = new x509.Pkcs10CertificateRequest(request);
    if (!(await parsed.verify())) return undefined;
    const key = createPublicKey({ key: Buffer.from(parsed.publicKey.rawData), format: 'der', type: 'spki' });
    return isStrong(key) ? key : undefined;
  } catch {
    return undefined;
  }
}

function isStrong({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): boolean {
  const { namedCurve, modulusLength = 0 } = asymmetricKeyDetails ?? {};
  if (asymmetricKeyType === 'ec') return CURVES.includes(namedCurve);
  if (asymmetricKeyType === 'rsa') return modulusLength >= RSA_BITS.least && modulusLength <= RSA_BITS.most;
  return asymmetricKeyType === 'ed25519';
}
