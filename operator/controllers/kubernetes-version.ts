import type { CloudProfile } from '../api/cloudprofile.ts';

type Version = readonly [major: number, minor: number, patch: number | undefined];

function parseVersion(text: string): Version {
  const [major = 0, minor = 0, patch] = text.split('.').map(Number);
  return [major, minor, patch];
}

function compareVersions(a: string, b: string): number {
  const [left, right] = [parseVersion(a), parseVersion(b)];
  return left[0] - right[0] || left[1] - right[1] || (left[2] ?? 0) - (right[2] ?? 0);
}

/**
 * Full version for a wish: itself, the newest patch of a minor, or by default the newest `supported` one. Preview
 * versions are used only by name; expired ones never (as in Gardener's maintenance). undefined: none fits.
 */
export function resolveVersion(asked: string | undefined, profile: CloudProfile, now: Date): string | undefined {
  const offered = (profile.spec.kubernetes.versions ?? []).filter(
    (offer) => !offer.expirationDate || new Date(offer.expirationDate) > now,
  );
  const newest = (names: string[]) => names.sort(compareVersions).at(-1);
  if (asked === undefined) {
    const supported = offered.filter((offer) => (offer.classification ?? 'supported') === 'supported');
    return newest(supported.map((offer) => offer.version));
  }
  if (parseVersion(asked)[2] !== undefined) return offered.find((offer) => offer.version === asked)?.version;
  const patches = offered.filter(
    (offer) => offer.version.startsWith(`${asked}.`) && offer.classification !== 'preview',
  );
  return newest(patches.map((offer) => offer.version));
}

/** Why a running cluster cannot be upgraded; undefined: it can. */
export function upgradeProblem(from: string, to: string): string | undefined {
  const [a, b] = [parseVersion(from), parseVersion(to)];
  if (compareVersions(to, from) < 0)
    return `version ${to} is older than ${from}, which runs: Kubernetes cannot be downgraded`;
  if (a[0] !== b[0] || b[1] - a[1] > 1)
    return `version ${to} skips a minor version after ${from}: go one minor at a time`;
  return undefined;
}
