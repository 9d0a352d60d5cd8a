import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto';
import { isIP } from 'node:net';
import { promisify } from 'node:util';
import ipaddr from 'ipaddr.js';
import {
  bitString,
  childElements,
  derTime,
  element,
  elementContent,
  integer,
  octetString,
  oid,
  sequence,
  set,
  utf8,
  yes,
} from './der.ts';

/** A certificate and its private key, both PEM; the key is PKCS#8, EC P-256. */
export interface KeyPair {
  cert: string;
  key: string;
}

/** Content of a leaf certificate. */
export interface CertificateRequest {
  commonName: string;
  organizations?: string[];
  dnsNames?: string[];
  ipAddresses?: string[];
  usages: ('server' | 'client')[];
}

const DAY_MS = 24 * 3600 * 1000;
// Clocks of seeds and machines differ a little; kube-controller-manager back-dates by the same five minutes.
const BACKDATE_MS = 5 * 60 * 1000;
const CA_RENEWAL_MS = 30 * DAY_MS;
const LEAF_RENEWAL_SHARE = 0.8;

/** Validity of stored certificates: a stolen one works for this long at most, since it cannot be revoked. */
export const LEAF_DAYS = 60;
/** Age at which every leaf is renewed, including those that earlier versions issued for 90 days or a year. */
const OLDEST_LEAF_DAYS = LEAF_DAYS * LEAF_RENEWAL_SHARE;

/** Signature algorithm of CAs and of Coppice's certificate requests. */
export const ECDSA_WITH_SHA256 = '1.2.840.10045.4.3.2';
const OID = {
  commonName: '2.5.4.3',
  organization: '2.5.4.10',
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAlternativeName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyIdentifier: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
};
const USAGE_OIDS = { server: '1.3.6.1.5.5.7.3.1', client: '1.3.6.1.5.5.7.3.2' };

const generateKeyPairAsync = promisify(generateKeyPair);

/** A new self-signed CA, valid for `days` from `now`. */
export async function createCA(request: { commonName: string; days: number; now?: Date }): Promise<KeyPair> {
  const { privateKey } = await newKey();
  return selfSign(privateKey, distinguishedName(request.commonName, []), request.days, request.now ?? new Date());
}

/**
 * The same CA (key and name) with a new validity of `days` from `now`, so that all certificates it signed stay valid.
 */
export async function renewCA(ca: KeyPair, request: { days: number; now?: Date }): Promise<KeyPair> {
  return selfSign(createPrivateKey(ca.key), subjectOf(ca.cert), request.days, request.now ?? new Date());
}

/** A new key with a certificate signed by `ca`, valid for `days` from `now` but never longer than the CA itself. */
export async function issue(ca: KeyPair, request: CertificateRequest & { days: number; now?: Date }): Promise<KeyPair> {
  const { privateKey, publicKey } = await newKey();
  return { cert: certify(ca, publicKey, request), key: pkcs8(privateKey) };
}

/** A certificate (PEM) for an existing public key. `days` may be a fraction. */
export function certify(
  ca: KeyPair,
  publicKey: KeyObject,
  request: CertificateRequest & { days: number; now?: Date },
): string {
  const now = request.now ?? new Date();
  const authorityKey = createPrivateKey(ca.key);
  const extensions = [
    extension(OID.basicConstraints, sequence(), true),
    // digitalSignature alone: keyEncipherment is for RSA.
    extension(OID.keyUsage, bitString(Buffer.from([0x80]), 7), true),
    extension(OID.extendedKeyUsage, sequence(...request.usages.map((usage) => oid(USAGE_OIDS[usage])))),
    extension(OID.authorityKeyIdentifier, sequence(element(0x80, keyIdentifier(createPublicKey(authorityKey))))),
  ];
  const names = alternativeNames(request);
  if (names.length > 0) extensions.push(extension(OID.subjectAlternativeName, sequence(...names)));
  const end = Math.min(now.getTime() + request.days * DAY_MS, certificateExpiry(ca.cert).getTime());
  return signed(authorityKey, {
    issuer: subjectOf(ca.cert),
    subject: distinguishedName(request.commonName, request.organizations ?? []),
    notBefore: new Date(now.getTime() - BACKDATE_MS),
    notAfter: new Date(end),
    publicKey,
    extensions,
  });
}

/** A key pair (PEM, EC P-256) for service account tokens (ES256). */
export async function newServiceAccountKey(): Promise<{ private: string; public: string }> {
  const { privateKey, publicKey } = await newKey();
  return { private: pkcs8(privateKey), public: publicKey.export({ type: 'spki', format: 'pem' }).toString() };
}

/** Expiry of a certificate. Throws when `cert` is not a PEM certificate. */
export function certificateExpiry(cert: string): Date {
  return read(cert).validToDate;
}

/**
 * Whether a leaf has passed 80 % of its life or an age of 48 days, or a CA is in its last 30 days. Throws when `cert`
 * is not a PEM certificate.
 * @param afterDays age at which a leaf is renewed if that is earlier
 */
export function needsRenewal(cert: string, now: Date, afterDays?: number): boolean {
  return now.getTime() >= renewalTime(cert, afterDays).getTime();
}

/** Time from which `needsRenewal` is true. Throws when `cert` is not a PEM certificate. */
export function renewalTime(cert: string, afterDays = OLDEST_LEAF_DAYS): Date {
  const parsed = read(cert);
  const start = parsed.validFromDate.getTime();
  const end = parsed.validToDate.getTime();
  if (parsed.ca) return new Date(end - CA_RENEWAL_MS);
  return new Date(start + Math.min((end - start) * LEAF_RENEWAL_SHARE, afterDays * DAY_MS));
}

/** Whether the certificate has exactly the subject, alternative names and usages of `request`. */
export function certificateMatches(cert: string, request: CertificateRequest): boolean {
  const parsed = parse(cert);
  if (!parsed) return false;
  const wanted = [
    ...(request.dnsNames ?? []).map((name) => `DNS:${name}`),
    ...(request.ipAddresses ?? []).map((address) => `IP Address:${canonicalIP(address)}`),
  ];
  const found = (parsed.subjectAltName?.split(', ') ?? []).map((name) =>
    name.startsWith('IP Address:') ? `IP Address:${canonicalIP(name.slice('IP Address:'.length))}` : name,
  );
  const subject = [`CN=${request.commonName}`, ...(request.organizations ?? []).map((name) => `O=${name}`)];
  const usages: string[] = request.usages.map((usage) => USAGE_OIDS[usage]);
  return (
    sameSet(parsed.subject.split('\n'), subject) && sameSet(found, wanted) && sameSet(parsed.keyUsage ?? [], usages)
  );
}

/** Whether `ca` signed the certificate. False for an invalid certificate. */
export function issuedBy(cert: string, ca: string): boolean {
  const parsed = parse(cert);
  const issuer = parse(ca);
  return parsed !== undefined && issuer !== undefined && parsed.checkIssued(issuer) && parsed.verify(issuer.publicKey);
}

/** PEM of the public key of a private key, in newServiceAccountKey's format; undefined: not a private key. */
export function publicKeyOf(privateKey: string | undefined): string | undefined {
  if (!privateKey) return undefined;
  try {
    return createPublicKey(createPrivateKey(privateKey)).export({ type: 'spki', format: 'pem' }).toString();
  } catch {
    return undefined;
  }
}

/** Whether certificate and key belong together. False when either is invalid. */
export function isPair(pair: Partial<KeyPair>): pair is KeyPair {
  if (!pair.cert || !pair.key) return false;
  try {
    return read(pair.cert).checkPrivateKey(createPrivateKey(pair.key));
  } catch {
    return false;
  }
}

function selfSign(privateKey: KeyObject, name: Buffer, days: number, now: Date): KeyPair {
  const publicKey = createPublicKey(privateKey);
  const cert = signed(privateKey, {
    issuer: name,
    subject: name,
    notBefore: new Date(now.getTime() - BACKDATE_MS),
    notAfter: new Date(now.getTime() + days * DAY_MS),
    publicKey,
    extensions: [
      extension(OID.basicConstraints, sequence(yes()), true),
      // digitalSignature, keyCertSign, cRLSign
      extension(OID.keyUsage, bitString(Buffer.from([0x86]), 1), true),
      extension(OID.subjectKeyIdentifier, octetString(keyIdentifier(publicKey))),
    ],
  });
  return { cert, key: pkcs8(privateKey) };
}

interface Content {
  issuer: Buffer;
  subject: Buffer;
  notBefore: Date;
  notAfter: Date;
  publicKey: KeyObject;
  extensions: Buffer[];
}

function signed(key: KeyObject, { issuer, subject, notBefore, notAfter, publicKey, extensions }: Content): string {
  const algorithm = sequence(oid(ECDSA_WITH_SHA256));
  const body = sequence(
    element(0xa0, integer(Buffer.from([2]))),
    integer(newSerial()),
    algorithm,
    issuer,
    sequence(derTime(notBefore), derTime(notAfter)),
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
    element(0xa3, sequence(...extensions)),
  );
  return toPem('CERTIFICATE', sequence(body, algorithm, bitString(sign('sha256', body, key))));
}

/** DER as PEM. */
export function toPem(type: 'CERTIFICATE' | 'CERTIFICATE REQUEST', der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g)!;
  return `-----BEGIN ${type}-----\n${lines.join('\n')}\n-----END ${type}-----\n`;
}

function extension(id: string, value: Buffer, critical = false): Buffer {
  return sequence(oid(id), ...(critical ? [yes()] : []), octetString(value));
}

/** A subject, as DER. */
export function distinguishedName(commonName: string, organizations: string[]): Buffer {
  const part = (id: string, text: string) => set(sequence(oid(id), utf8(text)));
  return sequence(...organizations.map((name) => part(OID.organization, name)), part(OID.commonName, commonName));
}

function alternativeNames(request: CertificateRequest): Buffer[] {
  return [
    ...(request.dnsNames ?? []).map((name) => element(0x82, Buffer.from(name, 'ascii'))),
    ...(request.ipAddresses ?? []).map((address) => element(0x87, addressBytes(address))),
  ];
}

// The original bytes, since verifiers compare the issuer's name byte for byte.
function subjectOf(cert: string): Buffer {
  const [body] = childElements(read(cert).raw);
  return childElements(body!)[5]!;
}

// SHA-1 of the public key's bits, as RFC 5280 suggests; it only distinguishes CAs.
function keyIdentifier(publicKey: KeyObject): Buffer {
  const [, bits] = childElements(publicKey.export({ type: 'spki', format: 'der' }));
  return createHash('sha1').update(elementContent(bits!).subarray(1)).digest();
}

const newKey = () => generateKeyPairAsync('ec', { namedCurve: 'P-256' });
const pkcs8 = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString();

// Positive, of constant length, without a leading zero byte.
function newSerial(): Buffer {
  const bytes = randomBytes(16);
  bytes[0] = (bytes[0]! & 0x3f) | 0x40;
  return bytes;
}

/** Parsed certificates by PEM text; larger than one cluster's set, so that a reconciliation parses each once. */
const recent = new Map<string, X509Certificate>();
const RECENT = 64;

/**
 * Parses a PEM certificate; throws otherwise. Cached: a reconciliation reads each certificate about six times, and
 * parsing dominated a thousand reconciliations after a restart.
 */
function read(cert: string): X509Certificate {
  let parsed = recent.get(cert);
  if (!parsed) {
    parsed = new X509Certificate(cert);
    recent.set(cert, parsed);
    for (const oldest of recent.keys()) {
      if (recent.size <= RECENT) break;
      recent.delete(oldest);
    }
  }
  return parsed;
}

function parse(cert: string): X509Certificate | undefined {
  try {
    return read(cert);
  } catch {
    return undefined;
  }
}

function canonicalIP(address: string): string {
  return isIP(address) === 6 ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address;
}

function addressBytes(address: string): Buffer {
  // ipaddr.js accepts addresses of inet_aton's form that Node rejects.
  if (isIP(address) === 0) throw new RangeError(`"${address}" is not an IP address`);
  return Buffer.from(ipaddr.parse(address).toByteArray());
}

function sameSet(left: string[], right: string[]): boolean {
  const a = new Set(left);
  const b = new Set(right);
  return a.size === b.size && [...a].every((value) => b.has(value));
}
