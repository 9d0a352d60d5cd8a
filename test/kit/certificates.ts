import { X509Certificate } from 'node:crypto';
import { expect } from 'vitest';

const DAY_MS = 24 * 3600_000;

/** Says on a machine of a control plane what certificates there are in files: as PEM, those of kubeconfigs too. There is no kubectl. */
export const CERTIFICATES_HERE = `cat $(find /etc/kubernetes/pki /var/lib/kubelet/pki -name '*.crt' -o -name '*.pem')
sed -n 's/.*client-certificate-data: //p' /etc/kubernetes/*.conf | while read -r one; do base64 -d <<<"$one"; done`;

/**
 * Expects of certificates (PEM, with whatever else is between them) that all but those of authorities last 60 days at most, and that none has
 * rights which nobody can take back.
 * @returns how many they are
 */
export function expectShortLived(text: string): number {
  const all = (text.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? []).map(
    (pem) => new X509Certificate(pem),
  );
  for (const { ca, subject, validFromDate, validToDate } of all) {
    expect(subject).not.toContain('system:masters');
    // Clocks may differ a little: who signs begins some minutes before.
    if (!ca) expect((+validToDate - +validFromDate) / DAY_MS, subject).toBeLessThan(60.1);
  }
  return all.filter(({ ca }) => !ca).length;
}
