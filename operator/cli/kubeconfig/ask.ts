import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { LABELS } from '../../api/group.ts';
import { KUBECONFIG_SIGNERS, type KubeconfigRole } from '../../api/kubeconfig-request.ts';
import type { KubeClient } from '../../kube/client.ts';
import { isNotFound } from '../../kube/errors.ts';
import { type CertificateSigningRequest, CSRS } from '../../kube/resources.ts';
import { newCertificateRequest } from '../../pki/certificate-request.ts';
import { certificateExpiry } from '../../pki/certificates.ts';
import { CliError, EXIT } from '../errors.ts';

/** Request for a certificate. */
export interface WantedKubeconfig {
  readonly namespace: string;
  readonly name: string;
  readonly role: KubeconfigRole;
  /** Wanted lifetime of the certificate. */
  readonly seconds: number;
}

/** A client certificate with key and server authority (all PEM), and the end of the certificate (RFC 3339). */
export interface Granted {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
  readonly endsAt: string;
}

/** An operator answers within a second; during a roll-out it takes longer. */
const PATIENCE_MS = 30_000;
const LOOK_MS = 100;
const ONE_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?/g;

/**
 * Requests a certificate for the cluster from the operator. The key is generated here and never sent.
 * Throws CliError: refused, with the operator's reason, or no answer in time.
 */
export async function askForCertificate(
  client: Pick<KubeClient, 'create' | 'get'>,
  { namespace, name, role, seconds }: WantedKubeconfig,
  signal: AbortSignal,
  patienceMs = PATIENCE_MS,
): Promise<Granted> {
  const { request, key } = await newCertificateRequest('kubeconfig');
  const named = `kubeconfig-${randomBytes(12).toString('hex')}`;
  await client.create<CertificateSigningRequest>(
    {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { name: named, labels: { [LABELS.workerCluster]: name, [LABELS.workerClusterNamespace]: namespace } },
      spec: {
        signerName: KUBECONFIG_SIGNERS[role],
        usages: ['client auth', 'digital signature'],
        expirationSeconds: seconds,
        request: Buffer.from(request).toString('base64'),
      },
    },
    { signal },
  );
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const { status } = await client
      .get<CertificateSigningRequest>(CSRS, named, undefined, { signal })
      .catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
        throw new CliError('the operator deleted the request: you make too many. Wait ten minutes, and ask less often');
      });
    const refused = status?.conditions?.find(({ type }) => type === 'Denied' || type === 'Failed');
    if (refused) throw await refusalOf(refused, { name, namespace });
    if (status?.certificate) return granted(Buffer.from(status.certificate, 'base64').toString(), key);
    if (performance.now() > deadline) {
      throw new CliError(
        `no operator answered the request for a kubeconfig of ${name} (CertificateSigningRequest ${named})`,
        {
          exitCode: EXIT.timedOut,
          advice: "check that the garden's operator runs",
        },
      );
    }
    await sleep(LOOK_MS, undefined, { signal });
  }
}

function granted(chain: string, key: string): Granted {
  const [cert, ...others] = chain.match(ONE_CERTIFICATE) ?? [];
  const ca = others.at(-1);
  if (cert === undefined || ca === undefined) throw new CliError("the operator's answer has no certificate authority");
  return { cert, key, ca, endsAt: certificateExpiry(cert).toISOString() };
}

async function refusalOf(
  { reason, message = 'the operator refused the request' }: { reason?: string; message?: string },
  cluster: { readonly name: string; readonly namespace: string },
): Promise<CliError> {
  // Loaded only on refusal: kubectl waits for each certificate.
  const { actionOf } = await import('../actions.ts');
  const exitCode = reason === 'NotFound' || reason === 'NotReady' ? EXIT.notFound : EXIT.failed;
  const asked = { apiVersion: '', kind: 'CertificateSigningRequest', metadata: cluster };
  const advice = actionOf(asked, { type: 'Denied', status: 'True', reason, lastTransitionTime: '' });
  return new CliError(message, { exitCode, ...(advice !== undefined && { advice }) });
}
