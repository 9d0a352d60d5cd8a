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
const RECORD = 'secrets-encryption.json';
const FILE = 'encryption.json';

/** The keys of the shoot's Secrets; undefined: they are not encrypted. @throws where what is there cannot be understood */
export const encryptionOf = (pki: PKIData): EncryptionState | undefined =>
  parseEncryptionState(pki[RECORD], `${RECORD} of Secret ${PKI_SECRET}`);

/** The same for whoever only looks: that it cannot be understood is said by who works with it. */
export function encryptionSeen(pki: PKIData): EncryptionState | undefined {
  try {
    return encryptionOf(pki);
  } catch {
    return undefined;
  }
}

/** The shoot's keys with this record of how Secrets are encrypted. */
export const withEncryption = (pki: PKIData, record: EncryptionState): PKIData => ({
  ...pki,
  [RECORD]: JSON.stringify(record),
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
  const record = encryptionOf(pki);
  if (record && !rotate) return pki;
  const key = newEncryptionKey(now);
  const wanted = record ? withNext(record, key) : isNew ? encryptedFromTheStart(key) : notYetEncrypted(key);
  return wanted === record ? pki : withEncryption(pki, wanted);
}

/** What API servers have of it: a file, and the flag that names it, without its dashes. */
export function encryptionParts(
  pki: PKIData,
  directory: string,
): { flags: Record<string, string>; files: Record<string, string> } {
  const record = encryptionOf(pki);
  if (!record) return { flags: {}, files: {} };
  return {
    flags: { 'encryption-provider-config': `${directory}/${FILE}` },
    files: { [FILE]: encryptionConfiguration(record) },
  };
}
