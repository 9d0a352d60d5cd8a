import { readText, writeIfChanged } from '../host/files.ts';

/**
 * Where pods may go from the garden: `all` that this machine reaches, `public` addresses alone, or `none`. Loopback, clouds' metadata and
 * other gardens are in none of them.
 */
export const EGRESS_POLICIES = ['all', 'public', 'none'] as const;
export type EgressPolicy = (typeof EGRESS_POLICIES)[number];

/** What pods have, as the daemon tells it. */
export interface EgressStatus {
  policy: EgressPolicy;
  /** Why they have no way out although they should. */
  problem?: string;
}

/** The policy of a file's text: `all` where nobody chose one. What cannot be understood opens nothing. */
export function parsePolicy(text: string | undefined): EgressPolicy {
  if (text === undefined) return 'all';
  try {
    const { policy } = JSON.parse(text) as { policy?: unknown };
    return EGRESS_POLICIES.find((one) => one === policy) ?? 'none';
  } catch {
    return 'none';
  }
}

export const readPolicy = async (file: string): Promise<EgressPolicy> => parsePolicy(await readText(file));

/** Remembers what a person chose, until they choose again. */
export async function writePolicy(file: string, policy: EgressPolicy): Promise<void> {
  await writeIfChanged(file, `${JSON.stringify({ policy })}\n`);
}

/** What pods reach, in a line for people. */
export function egressLine({ policy, problem }: EgressStatus): string {
  if (problem !== undefined) return `Pods reach nothing outside the garden: ${problem}`;
  if (policy === 'all') return 'Pods reach what this machine reaches.';
  if (policy === 'public') return 'Pods reach the internet, but no private network.';
  return 'Pods reach nothing outside the garden, as configured; "coppice up --egress all" changes that.';
}
