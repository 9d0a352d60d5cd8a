import './reflect.ts';

import * as x509 from '@peculiar/x509';
import { LONGEST_REQUEST } from './request-size.ts';

/**
 * Subject of a request in a CertificateSigningRequest.
 * @param request base64 of PEM
 * @returns undefined when it is invalid, too long to be parsed, or without exactly one common name
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
