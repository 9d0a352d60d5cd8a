import type { Machine } from '../../../../providers/contract.ts';
import type { ClusterConnection } from '../../../clusters/cluster-connection.ts';
import type { Log } from '../../../kube/log.ts';
import { type CertificateSigningRequest, CSRS } from '../../../kube/resources.ts';
import { tenantSteps } from '../../../kube/tenant-steps.ts';
import { approveServingCSR, type CSRDecision, isServingRequest } from '../../../shoot/kubelet-csr.ts';

/** Longest delay until a provider knows a new machine. */
export const MACHINE_KNOWN_MS = 10_000;

/**
 * Approves or denies kubelets' requests for serving certificates, which `kubectl logs` and `exec` need.
 * @param listMachines called only while a request is open: each list is a request to the seed or a cloud
 * @returns whether to wait for a machine to become known
 */
export async function decideServingCertificates(
  connection: ClusterConnection,
  listMachines: () => Promise<readonly Machine[]>,
  { log, now }: { log: Log; now: () => Date },
  signal: AbortSignal,
): Promise<boolean> {
  const isOpen = ({ status }: CertificateSigningRequest) => !status?.certificate && !status?.conditions?.length;
  // Requests for other signers may stay open for ever, and must not cause lists.
  const open = connection.csrs.list().filter((csr) => isServingRequest(csr) && isOpen(csr));
  if (open.length === 0) return false;
  const machines = await listMachines();
  let waiting = false;
  let denied = 0;
  const known = machines.map(({ nodeName, address }) => ({ nodeName, addresses: address ? [address] : [] }));
  const verdicts: { csr: CertificateSigningRequest; verdict: CSRDecision }[] = [];
  const judge = (csr: CertificateSigningRequest) => verdicts.push({ csr, verdict: approveServingCSR(csr, known) });
  await tenantSteps.each({ ...connection.owner, step: 'certificates' }, open, judge, signal);
  for (const { csr, verdict } of verdicts) {
    if (verdict.decision === 'ignore') continue;
    if (verdict.decision === 'wait') {
      waiting = true;
      log.debug({ csr: csr.metadata.name, reason: verdict.reason }, 'a serving certificate request has to wait');
      continue;
    }
    const approved = verdict.decision === 'approve';
    const { name, resourceVersion } = csr.metadata;
    // Only the changed fields: the cached object is incomplete.
    const answer = {
      metadata: { resourceVersion },
      status: {
        conditions: [
          {
            type: approved ? 'Approved' : 'Denied',
            status: 'True',
            reason: approved ? 'MachineMatches' : 'NotThisMachine',
            message: verdict.decision === 'deny' ? verdict.reason : 'name and addresses are those of the machine',
            lastTransitionTime: now().toISOString(),
          },
        ],
      },
    };
    if (verdict.decision === 'deny') {
      // Log the first denial only: the cluster's administrators choose their number.
      log[denied++ === 0 ? 'warn' : 'debug']({ csr: name, reason: verdict.reason }, 'a serving certificate was denied');
    }
    const options = { subresource: 'approval', signal };
    connection.csrs.absorb(
      await connection.client.mergePatch<CertificateSigningRequest>(CSRS, name, undefined, answer, options),
    );
  }
  return waiting;
}
