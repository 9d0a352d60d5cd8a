import type { KubeObject } from '../../../kube/resources.ts';
import { issueShootPKI, PKI_SECRET, type PKIData, type PKIParameters, planShootPKI } from '../../../shoot/pki.ts';
import type { Operation } from '../operation.ts';
import { readKeys, storeKeys, whileBehind } from '../stored-keys.ts';

/**
 * Makes missing, invalid and expiring keys and certificates; CAs of a used cluster are never replaced.
 * @param more adds further keys; returns the same object when nothing changes
 * @throws CoppiceError when keys of such a cluster are lost; see readKeys
 */
export const issueCertificates = (
  op: Operation,
  parameters: PKIParameters,
  signal: AbortSignal,
  more: (existing: PKIData) => PKIData = (existing) => existing,
): Promise<void> => whileBehind((fresh) => issueMissing(op, parameters, signal, more, fresh));

async function issueMissing(
  op: Operation,
  parameters: PKIParameters,
  signal: AbortSignal,
  more: (existing: PKIData) => PKIData,
  fresh: boolean,
): Promise<void> {
  const { seed, state, deps } = op;
  const now = deps.now();
  const stored = () => seed.secrets.get(`${op.values.namespace}/${PKI_SECRET}`);
  const printOf = ({ metadata }: KubeObject) =>
    `${metadata.uid}/${metadata.resourceVersion}/${JSON.stringify(parameters)}`;
  const isSound = () => {
    const known = stored();
    return known !== undefined && state.soundKeys === printOf(known);
  };
  const { keys } = state;
  // Skips the verification of a dozen signatures, the main cost of a reconcile without changes.
  const before = !fresh && keys && isSound() ? keys.data : await readKeys(op, signal, fresh);
  const existing = more(before);
  const isSame = existing === before;
  if (isSame && isSound() && state.nextRenewal && now < state.nextRenewal) {
    op.pki = existing;
    return;
  }
  const plan = planShootPKI(existing, parameters, now);
  state.nextRenewal = plan.nextRenewal;
  const known = stored();
  if (plan.issue.length === 0 && isSame && known) {
    op.pki = existing;
    state.soundKeys = printOf(known);
    return;
  }
  // Store keys before use: a crash must not lead to a second CA.
  await storeKeys(op, await issueShootPKI(existing, plan, parameters, now), signal);
  // The next check determines when new certificates expire.
  state.soundKeys = undefined;
}
