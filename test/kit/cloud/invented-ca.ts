import { createCA } from '../../../operator/pki/certificates.ts';

/** A certificate authority, PEM, of which nobody has the key any more: to be parsed, not to be used. */
export const inventCA = async (commonName: string): Promise<string> =>
  (await createCA({ commonName, days: 3650 })).cert;
