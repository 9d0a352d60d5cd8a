import { createPublicKey, generateKeyPair, sign } from 'node:crypto';
import { promisify } from 'node:util';
import { distinguishedName, ECDSA_WITH_SHA256, toPem } from './certificates.ts';
import { bitString, element, integer, oid, sequence } from './der.ts';

/** A certificate request (PKCS#10, PEM) with the private key that signed it (PKCS#8, PEM, EC P-256). */
interface RequestedKey {
  readonly request: string;
  readonly key: string;
}

/** A new key and its certificate request. The key stays in this process unless the caller stores it. */
export async function newCertificateRequest(commonName: string): Promise<RequestedKey> {
  const { privateKey } = await promisify(generateKeyPair)('ec', { namedCurve: 'P-256' });
  const body = sequence(
    integer(Buffer.from([0])),
    distinguishedName(commonName, []),
    createPublicKey(privateKey).export({ type: 'spki', format: 'der' }),
    // Empty attributes.
    element(0xa0),
  );
  const signature = bitString(sign('sha256', body, privateKey));
  const request = sequence(body, sequence(oid(ECDSA_WITH_SHA256)), signature);
  return {
    request: toPem('CERTIFICATE REQUEST', request),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}
