import '../pki/reflect.ts';

import { isIP } from 'node:net';
import * as x509 from '@peculiar/x509';
import { LONGEST_REQUEST } from '../pki/request-size.ts';

/** The fields of a CertificateSigningRequest that are read. */
interface ServingCSR {
  spec: { signerName: string; username?: string; groups?: string[]; usages?: string[]; request: string };
}

/** A machine as the provider knows it. */
interface KnownMachine {
  nodeName: string;
  addresses: string[];
}

/**
 * `approve`; `deny` for requests that no honest kubelet sends; `wait` while the machine or its address is unknown;
 * `ignore` for requests other than kubelet serving certificates.
 */
export type CSRDecision = { decision: 'approve' | 'ignore' } | { decision: 'deny' | 'wait'; reason: string };

const SIGNER = 'kubernetes.io/kubelet-serving';
const NODE_PREFIX = 'system:node:';
const NODES_GROUP = 'system:nodes';
const REQUIRED_USAGES = ['digital signature', 'server auth'];
const ALLOWED_USAGES = new Set([...REQUIRED_USAGES, 'key encipherment']);

/** Whether it requests a kubelet serving certificate: all others are ignored. */
export const isServingRequest = ({ spec }: ServingCSR): boolean => spec.signerName === SIGNER;

/**
 * Judges a kubelet's request for a serving certificate: the requester must be the node, and names and addresses those
 * of its machine.
 */
export function approveServingCSR(csr: ServingCSR, machines: readonly KnownMachine[]): CSRDecision {
  const { username = '', groups = [], usages = [], request } = csr.spec;
  if (!isServingRequest(csr)) return { decision: 'ignore' };
  if (!username.startsWith(NODE_PREFIX) || !groups.includes(NODES_GROUP)) return deny(`${cut(username)} is not a node`);
  if (
    !REQUIRED_USAGES.every((usage) => usages.includes(usage)) ||
    !usages.every((usage) => ALLOWED_USAGES.has(usage))
  ) {
    return deny(`usages ${cut(usages.join(', '))} are not those of a serving certificate`);
  }
  if (request.length > LONGEST_REQUEST || request === '')
    return deny(`the request is empty, or has more than ${LONGEST_REQUEST} characters`);
  const parsed = parsedRequest(csr);
  if (!parsed) return deny('the request is not a PKCS#10 certificate request');
  if (parsed.commonName !== username)
    return deny(`${cut(username)} asks for a certificate of ${cut(parsed.commonName ?? 'nobody')}`);
  if (parsed.organizations.length !== 1 || parsed.organizations[0] !== NODES_GROUP) {
    return deny(`organization must be ${NODES_GROUP} alone`);
  }
  if (parsed.others.length > 0)
    return deny(`alternative names of type ${[...new Set(parsed.others)].join(', ')} are not allowed`);
  if (parsed.dnsNames.length + parsed.ipAddresses.length === 0) return deny('the request has no alternative name');

  const nodeName = username.slice(NODE_PREFIX.length);
  const foreign = parsed.dnsNames.find((name) => name !== nodeName);
  if (foreign !== undefined) return deny(`${cut(nodeName)} asks for the name ${cut(foreign)}`);
  const machine = machines.find((candidate) => candidate.nodeName === nodeName);
  if (!machine) return { decision: 'wait', reason: `no machine named ${cut(nodeName)} is known` };
  if (machine.addresses.length === 0) return { decision: 'wait', reason: `${cut(nodeName)} has no known address yet` };
  const known = new Set(machine.addresses.map(canonical));
  const stray = parsed.ipAddresses.find((address) => !known.has(canonical(address)));
  if (stray !== undefined) return deny(`${cut(nodeName)} asks for the address ${stray}, which is not its own`);
  return { decision: 'approve' };
}

interface ParsedRequest {
  commonName: string | undefined;
  organizations: string[];
  dnsNames: string[];
  ipAddresses: string[];
  others: string[];
}

/** A waiting request is judged at each change of a pod, but parsed once: it never changes in the cache. */
const parsedOnce = new WeakMap<ServingCSR, ParsedRequest | 'unreadable'>();

function parsedRequest(csr: ServingCSR): ParsedRequest | undefined {
  const known = parsedOnce.get(csr) ?? parseRequest(csr.spec.request) ?? 'unreadable';
  parsedOnce.set(csr, known);
  return known === 'unreadable' ? undefined : known;
}

function parseRequest(request: string): ParsedRequest | undefined {
  try {
    const csr = new x509.Pkcs10CertificateRequest(Buffer.from(request, 'base64').toString());
    const extension = csr.extensions.find((item) => item instanceof x509.SubjectAlternativeNameExtension);
    const names = extension?.names.items ?? [];
    const commonNames = csr.subjectName.getField('CN');
    return {
      commonName: commonNames.length === 1 ? commonNames[0] : undefined,
      organizations: csr.subjectName.getField('O'),
      dnsNames: names.filter((name) => name.type === 'dns').map((name) => name.value),
      ipAddresses: names.filter((name) => name.type === 'ip').map((name) => name.value),
      others: names.map((name) => name.type).filter((type) => type !== 'dns' && type !== 'ip'),
    };
  } catch {
    return undefined;
  }
}

function canonical(address: string): string {
  return isIP(address) === 6 ? new URL(`http://[${address}]`).hostname : address;
}

/** The requester chooses the length of names; the reason is written into a condition and a log. */
const LONGEST_NAME = 100;
const cut = (text: string): string => (text.length > LONGEST_NAME ? `${text.slice(0, LONGEST_NAME)}...` : text);

const deny = (reason: string): CSRDecision => ({ decision: 'deny', reason });
