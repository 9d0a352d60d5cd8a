import type { Deployment, Secret } from '../kube/resources.ts';
import {
  type EncryptionState,
  encryptedFromTheStart,
  encryptionConfiguration,
  newEncryptionKey,
  notYetEncrypted,
  parseEncryptionState,
  withNext,
} from '../pki/secrets-encryption.ts';
import { PKI_SECRET, type PKIData } from './pki.ts';

/** Among the shoot's keys: those that its Secrets are encrypted with in etcd. */
export const STATE_KEY = 'secrets-encryption.json';
const FILE = 'encryption.json';
const FLAG = 'encryption-provider-config';

/** The keys of the shoot's Secrets; undefined: they are not encrypted. @throws where what is there cannot be understood */
export const encryptionOf = (pki: PKIData): EncryptionState | undefined =>
  parseEncryptionState(pki[STATE_KEY], `${STATE_KEY} of Secret ${PKI_SECRET}`);

/** The same for whoever only looks: that it cannot be understood is said by who works with it. */
export function encryptionSeen(pki: PKIData): EncryptionState | undefined {
  try {
    return encryptionOf(pki);
  } catch {
    return undefined;
  }
}

/** Whether API servers were told to encrypt Secrets: by their Secret, or by their Deployment. Pure. */
export const isToldToEncrypt = (secret: Secret | undefined, deployment: Deployment | undefined): boolean =>
  secret?.data?.[FILE] !== undefined || JSON.stringify(deployment?.spec.template.spec ?? {}).includes(`--${FLAG}=`);

/** The shoot's keys with what says how Secrets are encrypted. */
export const withEncryption = (pki: PKIData, state: EncryptionState): PKIData => ({
  ...pki,
  [STATE_KEY]: JSON.stringify(state),
});

/** What is known when the keys of Secrets are decided about. */
interface EncryptionWish {
  /** No API server can have written anything yet. */
  isNew: boolean;
  /** Somebody asks for another key. */
  rotate: boolean;
  now: Date;
}

/** The shoot's keys with those of its Secrets; the same object where nothing changes. Pure but for new keys. */
export function planEncryption(pki: PKIData, { isNew, rotate, now }: EncryptionWish): PKIData {
  const state = encryptionOf(pki);
  if (state && !rotate) return pki;
  const key = newEncryptionKey(now);
  const wanted = state ? withNext(state, key) : isNew ? encryptedFromTheStart(key) : notYetEncrypted(key);
  return wanted === state ? pki : withEncryption(pki, wanted);
}

/** What API servers have of it: a file, and the flag that names it, without its dashes. */
export function encryptionParts(
  pki: PKIData,
  directory: string,
): { flags: Record<string, string>; files: Record<string, string> } {
  const state = encryptionOf(pki);
  if (!state) return { flags: {}, files: {} };
  return {
    flags: { [FLAG]: `${directory}/${FILE}` },
    files: { [FILE]: encryptionConfiguration(state) },
  };
}
