import { decoded, type KubeObject, SECRETS, type Secret } from '../../../kube/resources.ts';
import { issueShootPKI, PKI_SECRET, type PKIData, type PKIParameters, planShootPKI } from '../../../shoot/pki.ts';
import { pkiSecret } from '../../../shoot/pki-secret.ts';
import type { Operation } from '../operation.ts';

/**
 * All keys and certificates: those that are missing, wrong or old are made.
 * @param more what else is to be kept among them; gives back the same object where nothing is to change
 */
export async function issueCertificates(
  op: Operation,
  parameters: PKIParameters,
  signal: AbortSignal,
  more: (existing: PKIData) => PKIData = (existing) => existing,
): Promise<void> {
  const { seed, state, deps } = op;
  const now = deps.now();
  const stored = seed.secrets.get(`${op.values.namespace}/${PKI_SECRET}`) ?? (await unlabelledKeys(op, signal));
  const printOf = ({ metadata }: KubeObject) =>
    `${metadata.uid}/${metadata.resourceVersion}/${JSON.stringify(parameters)}`;
  const before = decoded(stored?.data);
  const existing = more(before);
  const isSame = existing === before;
  // Verifying a dozen signatures is most of what a look at a cluster costs, at which nothing is to be done.
  if (isSame && stored && state.soundKeys === printOf(stored) && state.nextRenewal && now < state.nextRenewal) {
    op.pki = existing;
    return;
  }
  const plan = planShootPKI(existing, parameters, now);
  state.nextRenewal = plan.nextRenewal;
  if (plan.issue.length === 0 && isSame) {
    op.pki = existing;
    state.soundKeys = stored && printOf(stored);
    return;
  }
  op.pki = await issueShootPKI(existing, plan, parameters, now);
  // Keys first to safety: a crash between here and the components must not make a second authority.
  const { object } = await seed.applier.apply(pkiSecret(op.values, op.pki), signal);
  seed.secrets.absorb(object);
  // Only what was made is new: when that is to be looked at again is found out at the next look.
  state.soundKeys = undefined;
}

/**
 * The keys, where somebody took the labels off by which caches know them: they get them back. Taken for missing, all authorities would be
 * made anew over the only copy, and nothing of the cluster would trust anything of it any more.
 */
async function unlabelledKeys(
  { seed, values, namespaceIsNew }: Operation,
  signal: AbortSignal,
): Promise<Secret | undefined> {
  if (namespaceIsNew) return undefined;
  const live = await seed.client.getOrUndefined<Secret>(SECRETS, PKI_SECRET, values.namespace, { signal });
  if (!live) return undefined;
  const { object } = await seed.applier.apply(pkiSecret(values, decoded(live.data)), signal);
  seed.secrets.absorb(object);
  return object;
}
