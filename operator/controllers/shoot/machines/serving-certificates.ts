import type { Machine } from '../../../../providers/contract.ts';
import type { ClusterConnection } from '../../../clusters/cluster-connection.ts';
import type { Log } from '../../../kube/log.ts';
import { type CertificateSigningRequest, CSRS } from '../../../kube/resources.ts';
import { tenantSteps } from '../../../kube/tenant-steps.ts';
import { approveServingCSR, type CSRDecision, isServingRequest } from '../../../shoot/kubelet-csr.ts';

/** As long as a provider may take to know of a new machine. */
export const MACHINE_KNOWN_MS = 10_000;

/**
 * Approves or denies the kubelets' requests for serving certificates; without one `kubectl logs` and `exec` do not work.
 * @param listMachines asked only where a request is open: pods change often, and each list is a request to the seed or a cloud
 * @returns whether one has to wait until its machine is known
 */
export async function decideServingCertificates(
  connection: ClusterConnection,
  listMachines: () => Promise<readonly Machine[]>,
  { log, now }: { log: Log; now: () => Date },
  signal: AbortSignal,
): Promise<boolean> {
  const isOpen = ({ status }: CertificateSigningRequest) => !status?.certificate && !status?.conditions?.length;
  // A request for another signer may stay open for ever: it must not cause a list of machines at each look.
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
    // Not the whole object: the cache has but a part of it.
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
      // Whoever is administrator of that cluster chooses how many there are.
      log[denied++ === 0 ? 'warn' : 'debug']({ csr: name, reason: verdict.reason }, 'a serving certificate was denied');
    }
    const options = { subresource: 'approval', signal };
    connection.csrs.absorb(
      await connection.client.mergePatch<CertificateSigningRequest>(CSRS, name, undefined, answer, options),
    );
  }
  return waiting;
}
