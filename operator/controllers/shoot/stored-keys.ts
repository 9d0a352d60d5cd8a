import { notYetConfigured } from '../../api/errors.ts';
import { COMPONENTS } from '../../api/names.ts';
import { hasServed } from '../../api/shoot.ts';
import { KubeApiError } from '../../kube/errors.ts';
import { decodeSecret, type KubeObject, PVCS, SECRETS, type Secret } from '../../kube/resources.ts';
import { lacksKeysOf } from '../../pki/secrets-encryption.ts';
import { etcdClaimName } from '../../shoot/etcd.ts';
import { lostKeys, PKI_SECRET, type PKIData, replacedKeys, withKept } from '../../shoot/pki.ts';
import { pkiSecret } from '../../shoot/pki-secret.ts';
import { encryptionSeen, isToldToEncrypt, STATE_KEY } from '../../shoot/secrets-encryption.ts';
import { type ControlPlane, controlPlaneLabels } from '../../shoot/values.ts';
import type { Operation } from './operation.ts';
import { otherOwnerIn } from './ownership.ts';
import { noteIn } from './self-hosted/self-hosted.ts';

/** Most conflicts before giving up: a second operator must be running. */
const MOST_TRIES = 5;

/**
 * Stores the shoot's keys, also in the operation. The first keys are created, later ones replace the version that they
 * were made from, so that two operators acting at once cannot replace each other's CAs.
 * @throws KubeApiError (409) when the keys changed meanwhile; call readKeys again
 */
export async function storeKeys(op: Operation, pki: PKIData, signal?: AbortSignal): Promise<void> {
  const { applier, secrets } = op.seed;
  const version = op.state.keys?.version;
  const secret = pkiSecret(op.values, pki);
  const stored =
    version === undefined
      ? await applier.create(secret, signal)
      : (await applier.apply(secret, signal, undefined, version)).object;
  secrets.absorb(stored as Secret);
  know(op, pki, stored.metadata.resourceVersion);
}

/**
 * Stored keys of the shoot. Lost or replaced keys that cannot be made again are restored from memory, if they are
 * there. Returns none only if nothing was made with any: then new ones may be made.
 * @param fresh ask the server, because the cache may be stale
 * @throws CoppiceError when keys are lost permanently: new ones would make everything made with them unreadable
 */
export async function readKeys(op: Operation, signal: AbortSignal, fresh = false): Promise<PKIData> {
  const { seed, state, shoot, values, deps } = op;
  const cached = fresh ? undefined : seed.secrets.get(`${values.namespace}/${PKI_SECRET}`);
  const stored = cached ?? (await unlabelledKeys(op, signal));
  const data = decodeSecret(stored?.data);
  const kept = keptKeys(op);
  const replaced = kept ? [...replacedKeys(data, kept), ...replacedEncryption(data, kept)] : [];
  const lost = [...new Set([...lostOf(op, data), ...replaced])];
  if (lost.length === 0) {
    know(op, data, stored?.metadata.resourceVersion);
    return data;
  }
  if (kept) {
    const whole = withKept(data, kept, lost);
    // Only the version is of the damaged Secret: a write that fails must not cost the keys in memory.
    know(op, kept, stored?.metadata.resourceVersion);
    await storeKeys(op, whole, signal);
    deps.recordEvent(
      shoot,
      'Warning',
      'KeysRestored',
      `the keys ${lost.join(', ')} were missing, damaged or replaced in Secret ${values.namespace}/${PKI_SECRET} of seed ${seed.name}: the operator had them, and wrote them back`,
    );
    return whole;
  }
  const use = await useOfKeys(op, signal);
  if (use) throw keysLost(op, lost, use);
  state.keysLost = undefined;
  // Forget the old keys, so that they do not overwrite what is made next.
  state.keys = { uid: shoot.metadata.uid, data, version: stored?.metadata.resourceVersion };
  return data;
}

/** Reads the keys of a shoot when nothing is made: restores or reports lost ones. */
export async function keepKeys(op: Operation, signal: AbortSignal): Promise<void> {
  op.pki = await readKeys(op, signal);
}

/**
 * Restores lost keys from memory while an operation waits, for example minutes for an API server. Keys that are not in
 * memory are left to the operation, which reports them.
 */
export async function restoreKeys(op: Operation, signal: AbortSignal): Promise<void> {
  const { seed, shoot, values, deps } = op;
  const namespace = seed.namespaces.get(values.namespace);
  if (!namespace || namespace.metadata.deletionTimestamp || otherOwnerIn(namespace, shoot, deps.gardenID)) return;
  const kept = keptKeys(op);
  const data = decodeSecret(seed.secrets.get(`${values.namespace}/${PKI_SECRET}`)?.data);
  // A rotation replaces the encryption keys of Secrets at this moment, perhaps; nobody replaces others.
  if (!kept || (lostOf(op, data).length === 0 && replacedKeys(data, kept).length === 0)) return;
  await whileBehind((fresh) => readKeys(op, signal, fresh));
}

/**
 * Repeats work that ends with storeKeys, after a conflict with keys that another writer stored meanwhile.
 * @param work `fresh`: whether to use the keys that the server has
 */
export async function whileBehind<T>(work: (fresh: boolean) => Promise<T>): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await work(tried > 1);
    } catch (error) {
      const isBehind = error instanceof KubeApiError && error.status === 409;
      if (!isBehind || tried === MOST_TRIES) throw error;
    }
  }
}

/** Complete keys of this Shoot in memory; undefined: none. */
function keptKeys(op: Operation): PKIData | undefined {
  const { keys } = op.state;
  const isKept = keys?.uid === op.shoot.metadata.uid && keys !== undefined && lostOf(op, keys.data).length === 0;
  return isKept ? keys.data : undefined;
}

function know(op: Operation, data: PKIData, version: string | undefined): void {
  const { state, shoot } = op;
  op.pki = data;
  state.keys = { uid: shoot.metadata.uid, data, version };
  state.keysLost = undefined;
}

/** Lost keys that cannot be made again, for people. */
function lostOf(op: Operation, data: PKIData): string[] {
  return [...lostKeys(data), ...(encryptionSeen(data) || !isEncrypted(op) ? [] : [STATE_KEY])];
}

/** The encryption keys of Secrets, if somebody replaced them: Secrets could not be read with others. */
function replacedEncryption(data: PKIData, kept: PKIData): string[] {
  const [state, before] = [encryptionSeen(data), encryptionSeen(kept)];
  return state && before && lacksKeysOf(state, before) ? [STATE_KEY] : [];
}

function isEncrypted({ seed, values, state }: Operation): boolean {
  if (state.keys && encryptionSeen(state.keys.data)) return true;
  const apiServer = `${values.namespace}/${COMPONENTS.apiServer}`;
  return isToldToEncrypt(seed.secrets.get(apiServer), seed.deployments.get(apiServer));
}

/**
 * Evidence that the shoot's keys were used, a clause; undefined: none. Includes objects in the seed that outlive the
 * keys.
 */
async function useOfKeys(op: Operation, signal: AbortSignal): Promise<string | undefined> {
  const { seed, shoot, values, namespaceIsNew } = op;
  const { namespace } = values;
  if (hasServed(shoot)) return 'the cluster has served';
  if (namespaceIsNew) return undefined;
  if (noteIn(op)) return 'its control plane has begun';
  if (seed.statefulSets.get(`${namespace}/${COMPONENTS.etcd}`)) return 'its etcd was made';
  if (await seed.client.getOrUndefined(SECRETS, COMPONENTS.etcd, namespace, { signal })) return 'its etcd has a Secret';
  const { items } = await seed.client.list(PVCS, { namespace, signal });
  const volume = items.find(
    (claim) =>
      values.addresses.etcd.some((_, ordinal) => claim.metadata.name === etcdClaimName(ordinal)) ||
      isLabelled(claim, values),
  );
  return volume && `volume ${volume.metadata.name} has its data`;
}

function keysLost({ seed, state, values }: Operation, lost: readonly string[], use: string): Error {
  const where = `Secret ${values.namespace}/${PKI_SECRET} of seed ${seed.name}`;
  const error = notYetConfigured(
    `${where} has lost ${lost.join(', ')}, and ${use}: the operator makes no other keys, with which nothing of the cluster could be read`,
    `Restore ${where} from a backup, and the operator goes on. Without a backup, copy what you need out of the cluster, and delete it.`,
  );
  state.keysLost = `${error.message}. ${error.advice}`;
  return error;
}

const isLabelled = ({ metadata: { labels } }: KubeObject, values: ControlPlane): boolean =>
  Object.entries(controlPlaneLabels(values)).every(([label, value]) => labels?.[label] === value);

/**
 * The keys if somebody removed the Secret's labels, which caches select by; restores the labels. Taking such keys for
 * missing would replace all CAs over the only copy, and nothing in the cluster would trust anything any more.
 */
async function unlabelledKeys(
  { seed, values, namespaceIsNew }: Operation,
  signal: AbortSignal,
): Promise<Secret | undefined> {
  if (namespaceIsNew) return undefined;
  const live = await seed.client.getOrUndefined<Secret>(SECRETS, PKI_SECRET, values.namespace, { signal });
  if (!live) return undefined;
  const { resourceVersion } = live.metadata;
  if (isLabelled(live, values)) {
    seed.secrets.absorb(live);
    return live;
  }
  const secret = pkiSecret(values, decodeSecret(live.data));
  const { object } = await seed.applier.apply(secret, signal, undefined, resourceVersion);
  seed.secrets.absorb(object);
  return object;
}
