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

/**
 * The same for a control plane on machines, which take no other key yet: a cluster has one from its beginning, or goes on with Secrets as
 * they are. A key that only the operator knows of would have machines to come write what those that are there cannot read.
 */
export const encryptionForLife = (pki: PKIData, { isNew, now }: Omit<EncryptionWish, 'rotate'>): PKIData =>
  isNew ? planEncryption(pki, { isNew, rotate: false, now }) : pki;

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
