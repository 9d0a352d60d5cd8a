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

/** Key of the shoot's PKI Secret with the encryption keys of Secrets. */
export const STATE_KEY = 'secrets-encryption.json';
const FILE = 'encryption.json';
const FLAG = 'encryption-provider-config';

/** Encryption keys of the shoot's Secrets; undefined: not encrypted. @throws when they cannot be parsed */
export const encryptionOf = (pki: PKIData): EncryptionState | undefined =>
  parseEncryptionState(pki[STATE_KEY], `${STATE_KEY} of Secret ${PKI_SECRET}`);

/** The same for observers: a parse error is reported by the controller that uses the keys. */
export function encryptionSeen(pki: PKIData): EncryptionState | undefined {
  try {
    return encryptionOf(pki);
  } catch {
    return undefined;
  }
}

/** Whether API servers are configured to encrypt Secrets, in their Secret or Deployment. Pure. */
export const isToldToEncrypt = (secret: Secret | undefined, deployment: Deployment | undefined): boolean =>
  secret?.data?.[FILE] !== undefined || JSON.stringify(deployment?.spec.template.spec ?? {}).includes(`--${FLAG}=`);

/** The shoot's keys with the encryption state of Secrets. */
export const withEncryption = (pki: PKIData, state: EncryptionState): PKIData => ({
  ...pki,
  [STATE_KEY]: JSON.stringify(state),
});

/** Input of planEncryption. */
interface EncryptionWish {
  /** Whether no API server can have written anything yet. */
  isNew: boolean;
  /** Whether a rotation is requested. */
  rotate: boolean;
  now: Date;
}

/**
 * The shoot's keys with the encryption keys of its Secrets; the same object where nothing changes. Pure except for new
 * keys.
 */
export function planEncryption(pki: PKIData, { isNew, rotate, now }: EncryptionWish): PKIData {
  const state = encryptionOf(pki);
  if (state && !rotate) return pki;
  const key = newEncryptionKey(now);
  const wanted = state ? withNext(state, key) : isNew ? encryptedFromTheStart(key) : notYetEncrypted(key);
  return wanted === state ? pki : withEncryption(pki, wanted);
}

/** The API server's encryption file and its flag (without dashes). */
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
