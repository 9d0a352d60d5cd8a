import { KubeApiError } from '../../../kube/errors.ts';
import type { KubeObject } from '../../../kube/resources.ts';
import { issueShootPKI, PKI_SECRET, type PKIData, type PKIParameters, planShootPKI } from '../../../shoot/pki.ts';
import type { Operation } from '../operation.ts';
import { readKeys, storeKeys } from '../stored-keys.ts';

/** Another operator that stores keys as often as this one is one too many. */
const MOST_TRIES = 5;

/**
 * All keys and certificates: those that are missing, wrong or old are made. Of a cluster that keys were used in, no authority is.
 * @param more what else is to be kept among them; gives back the same object where nothing is to change
 * @throws CoppiceError where keys of such a cluster are lost; see readKeys
 */
export async function issueCertificates(
  op: Operation,
  parameters: PKIParameters,
  signal: AbortSignal,
  more: (existing: PKIData) => PKIData = (existing) => existing,
): Promise<void> {
  for (let tried = 1; ; tried++) {
    try {
      return await issueMissing(op, parameters, signal, more, tried > 1);
    } catch (error) {
      // Somebody else has stored keys meanwhile: those hold.
      const isBehind = error instanceof KubeApiError && error.status === 409;
      if (!isBehind || tried === MOST_TRIES) throw error;
    }
  }
}

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
  // Verifying a dozen signatures is most of what a look at a cluster costs, at which nothing is to be done.
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
  // Keys first to safety: a crash between here and the components must not make a second authority.
  await storeKeys(op, await issueShootPKI(existing, plan, parameters, now), signal);
  // Only what was made is new: when that is to be looked at again is found out at the next look.
  state.soundKeys = undefined;
}
