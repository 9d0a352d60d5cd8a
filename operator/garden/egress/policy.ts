import { readText, writeIfChanged } from '../host/files.ts';

/**
 * Where pods may connect outside the garden: `all` that this machine reaches, `public` addresses only, or `none`.
 * Loopback, cloud metadata services and other gardens are always excluded.
 */
export const EGRESS_POLICIES = ['all', 'public', 'none'] as const;
export type EgressPolicy = (typeof EGRESS_POLICIES)[number];

/** Outbound access of pods, as the daemon reports it. */
export interface EgressStatus {
  policy: EgressPolicy;
  /** Why the policy's access is unavailable. */
  problem?: string;
}

/** The policy in a file; `all` where none was chosen. An unreadable file opens nothing. */
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

/** Stores a person's choice until it is changed. */
export async function writePolicy(file: string, policy: EgressPolicy): Promise<void> {
  await writeIfChanged(file, `${JSON.stringify({ policy })}\n`);
}

/** Outbound access of pods, a line for messages. */
export function egressLine({ policy, problem }: EgressStatus): string {
  if (problem !== undefined) return `Pods reach nothing outside the garden: ${problem}`;
  if (policy === 'all') return 'Pods reach what this machine reaches.';
  if (policy === 'public') return 'Pods reach the internet, but no private network.';
  return 'Pods reach nothing outside the garden, as configured; "coppice up --egress all" changes that.';
}
