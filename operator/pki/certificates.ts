import './reflect.ts';

import { createPrivateKey, generateKeyPair, type webcrypto, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { promisify } from 'node:util';
import * as x509 from '@peculiar/x509';

/** A certificate and its private key, both PEM; the key is PKCS#8, EC P-256. */
export interface KeyPair {
  cert: string;
  key: string;
}

/** What a leaf certificate must say. */
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

const KEY_ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' };
const SIGNING_ALGORITHM = { name: 'ECDSA', hash: 'SHA-256' };
const USAGE_OIDS = { server: x509.ExtendedKeyUsage.serverAuth, client: x509.ExtendedKeyUsage.clientAuth } as const;

const generateKeyPairAsync = promisify(generateKeyPair);

/** A new self-signed certificate authority, valid for `days` from `now`. */
export async function createCA(request: { commonName: string; days: number; now?: Date }): Promise<KeyPair> {
  return selfSign(await newKey(), request.commonName, request.days, request.now ?? new Date());
}

/**
 * The same authority (key and name) with a new validity of `days` from `now`, so that everything it signed stays valid.
 */
export async function renewCA(ca: KeyPair, request: { days: number; now?: Date }): Promise<KeyPair> {
  const commonName = new x509.X509Certificate(ca.cert).subjectName.getField('CN')[0] ?? '';
  return selfSign(ca.key, commonName, request.days, request.now ?? new Date());
}

/** A new key with a certificate signed by `ca`, valid for `days` from `now` but never longer than the CA itself. */
export async function issue(ca: KeyPair, request: CertificateRequest & { days: number; now?: Date }): Promise<KeyPair> {
  const now = request.now ?? new Date();
  const issuer = new x509.X509Certificate(ca.cert);
  const key = await newKey();
  const keys = await importKey(key);
  const names = [
    ...(request.dnsNames ?? []).map((value) => ({ type: 'dns' as const, value })),
    ...(request.ipAddresses ?? []).map((value) => ({ type: 'ip' as const, value })),
  ];
  const extensions: x509.Extension[] = [
    new x509.BasicConstraintsExtension(false, undefined, true),
    new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
    new x509.ExtendedKeyUsageExtension(request.usages.map((usage) => USAGE_OIDS[usage])),
    await x509.AuthorityKeyIdentifierExtension.create(issuer),
  ];
  if (names.length > 0) extensions.push(new x509.SubjectAlternativeNameExtension(names));
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: newSerial(),
    subject: subjectName(request),
    issuer: issuer.subjectName.toJSON(),
    notBefore: new Date(now.getTime() - BACKDATE_MS),
    notAfter: new Date(Math.min(now.getTime() + request.days * DAY_MS, issuer.notAfter.getTime())),
    extensions,
    publicKey: keys.publicKey,
    signingKey: (await importKey(ca.key)).privateKey,
    signingAlgorithm: SIGNING_ALGORITHM,
  });
  return { cert: pem(certificate), key };
}

/** A key pair (PEM, EC P-256) for signing and checking service account tokens (ES256). */
export async function newServiceAccountKey(): Promise<{ private: string; public: string }> {
  const { privateKey, publicKey } = await generateKeyPairAsync('ec', { namedCurve: 'P-256' });
  return {
    private: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    public: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  };
}

/** When the certificate ends. Throws when `cert` is not a PEM certificate. */
export function expiry(cert: string): Date {
  return new X509Certificate(cert).validToDate;
}

/** A leaf at 80 % of its life, a CA in its last 30 days. Throws when `cert` is not a PEM certificate. */
export function needsRenewal(cert: string, now: Date): boolean {
  return now.getTime() >= renewalTime(cert).getTime();
}

/** The instant from which `needsRenewal` is true. Throws when `cert` is not a PEM certificate. */
export function renewalTime(cert: string): Date {
  const parsed = new X509Certificate(cert);
  const start = parsed.validFromDate.getTime();
  const end = parsed.validToDate.getTime();
  return new Date(parsed.ca ? end - CA_RENEWAL_MS : start + (end - start) * LEAF_RENEWAL_SHARE);
}

/** Whether the certificate says exactly what `request` asks for: subject, alternative names and usages. */
export function matches(cert: string, request: CertificateRequest): boolean {
  const parsed = parse(cert);
  if (!parsed) return false;
  const found = parsed.getExtension(x509.SubjectAlternativeNameExtension)?.names.items ?? [];
  const usages = parsed.getExtension(x509.ExtendedKeyUsageExtension)?.usages ?? [];
  return (
    sameSet(parsed.subjectName.getField('CN'), [request.commonName]) &&
    sameSet(parsed.subjectName.getField('O'), request.organizations ?? []) &&
    sameSet(ofType(found, 'dns'), request.dnsNames ?? []) &&
    sameSet(ofType(found, 'ip').map(canonicalIP), (request.ipAddresses ?? []).map(canonicalIP)) &&
    sameSet(
      usages.map(String),
      request.usages.map((usage) => USAGE_OIDS[usage]),
    )
  );
}

/** Whether `ca` signed the certificate. False for what is not a certificate. */
export function issuedBy(cert: string, ca: string): boolean {
  try {
    const issuer = new X509Certificate(ca);
    const parsed = new X509Certificate(cert);
    return parsed.checkIssued(issuer) && parsed.verify(issuer.publicKey);
  } catch {
    return false;
  }
}

/** Whether certificate and key belong together. False for what is neither. */
export function isPair(pair: Partial<KeyPair>): pair is KeyPair {
  if (!pair.cert || !pair.key) return false;
  try {
    return new X509Certificate(pair.cert).checkPrivateKey(createPrivateKey(pair.key));
  } catch {
    return false;
  }
}

async function selfSign(key: string, commonName: string, days: number, now: Date): Promise<KeyPair> {
  const keys = await importKey(key);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: newSerial(),
    name: [{ CN: [commonName] }],
    notBefore: new Date(now.getTime() - BACKDATE_MS),
    notAfter: new Date(now.getTime() + days * DAY_MS),
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(
        x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign,
        true,
      ),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
    keys,
    signingAlgorithm: SIGNING_ALGORITHM,
  });
  return { cert: pem(certificate), key };
}

async function newKey(): Promise<string> {
  const { privateKey } = await generateKeyPairAsync('ec', { namedCurve: 'P-256' });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

async function importKey(key: string): Promise<webcrypto.CryptoKeyPair> {
  const privateKey = createPrivateKey(key);
  const pkcs8 = privateKey.export({ type: 'pkcs8', format: 'der' });
  const imported = await crypto.subtle.importKey('pkcs8', pkcs8, KEY_ALGORITHM, true, ['sign']);
  const { kty, crv, x, y } = privateKey.export({ format: 'jwk' });
  const jwk = { kty, crv, x, y } as webcrypto.JsonWebKey;
  const publicKey = await crypto.subtle.importKey('jwk', jwk, KEY_ALGORITHM, true, ['verify']);
  return { privateKey: imported, publicKey };
}

// Go's parser insists on positive serials of at most 20 octets.
function newSerial(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[0] = (bytes[0]! & 0x7f) | 0x40;
  return Buffer.from(bytes).toString('hex');
}

function subjectName(request: CertificateRequest): x509.JsonName {
  return [...(request.organizations ?? []).map((name) => ({ O: [name] })), { CN: [request.commonName] }];
}

function pem(certificate: x509.X509Certificate): string {
  return certificate.toString('pem').trim() + '\n';
}

function parse(cert: string): x509.X509Certificate | undefined {
  try {
    return new x509.X509Certificate(cert);
  } catch {
    return undefined;
  }
}

function ofType(names: readonly x509.GeneralName[], type: 'dns' | 'ip'): string[] {
  return names.filter((name) => name.type === type).map((name) => name.value);
}

function canonicalIP(address: string): string {
  return isIP(address) === 6 ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address;
}

function sameSet(left: string[], right: string[]): boolean {
  const a = new Set(left);
  const b = new Set(right);
  return a.size === b.size && [...a].every((value) => b.has(value));
}
