import { randomBytes } from 'node:crypto';
import type { KubeObject } from '../api/meta.ts';

/** A machine's credential for its first certificate. */
interface BootstrapToken {
  /** 6 characters, public. */
  id: string;
  /** 16 characters. */
  secret: string;
}

/** Group of machines without a certificate. */
export const BOOTSTRAPPERS_GROUP = 'system:bootstrappers:coppice';

export const newBootstrapToken = (): BootstrapToken => ({ id: randomText(6), secret: randomText(16) });

/** The token in the form that kubeconfigs contain. */
export const tokenText = (token: BootstrapToken): string => `${token.id}.${token.secret}`;

/**
 * Secret by which a shoot's API server accepts the token until `expiration`; then the token cleaner deletes it.
 * @param groups further groups of its bearers
 */
export function bootstrapTokenSecret(
  token: BootstrapToken,
  pool: string,
  expiration: Date,
  groups: readonly string[] = [],
): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: `bootstrap-token-${token.id}`, namespace: 'kube-system' },
    type: 'bootstrap.kubernetes.io/token',
    stringData: {
      'token-id': token.id,
      'token-secret': token.secret,
      description: `Lets machines of pool ${pool} join.`,
      expiration: expiration.toISOString().replace(/\.\d+Z$/, 'Z'),
      'usage-bootstrap-authentication': 'true',
      'auth-extra-groups': [BOOTSTRAPPERS_GROUP, ...groups].join(','),
    },
  };
}

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz012345';

// 32 letters, so that five bits of each byte choose uniformly.
const randomText = (length: number): string =>
  Array.from(randomBytes(length), (byte) => ALPHABET[byte % ALPHABET.length]).join('');
