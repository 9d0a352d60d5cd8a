import './reflect.ts';

import * as x509 from '@peculiar/x509';
import { LONGEST_REQUEST } from './request-size.ts';

/**
 * Whose certificate is asked for, as a CertificateSigningRequest carries it.
 * @param request base64 of PEM
 * @returns undefined for what is no certificate request, is longer than any that is parsed, or does not have exactly one common name
 */
export function requestedSubject(request: string): { commonName: string; organizations: string[] } | undefined {
  if (request.length > LONGEST_REQUEST) return undefined;
  try {
    const { subjectName } = new x509.Pkcs10CertificateRequest(Buffer.from(request, 'base64').toString());
    const [commonName, ...others] = subjectName.getField('CN');
    if (commonName === undefined || others.length > 0) return undefined;
    return { commonName, organizations: subjectName.getField('O') };
  } catch {
    return undefined;
  }
}
