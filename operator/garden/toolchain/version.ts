import type { Tool } from './tools.ts';

const parse = (version: string): [number, number, number] => {
  const match = /^v?(\d+)\.(\d+)(?:\.(\d+))?/.exec(version);
  return match ? [Number(match[1]), Number(match[2]), Number(match[3] ?? 0)] : [0, 0, 0];
};

/** Whether a found version satisfies the pinned one. */
export const isFitting = (found: string, pinned: string, accepts: Tool['accepts']): boolean => {
  if (accepts === 'any') return true;
  const [major, minor, patch] = parse(found);
  const [wantMajor, wantMinor, wantPatch] = parse(pinned);
  if (accepts === 'same-minor') return major === wantMajor && minor === wantMinor && patch >= wantPatch;
  if (major !== wantMajor) return major > wantMajor;
  return minor !== wantMinor ? minor > wantMinor : patch >= wantPatch;
};
