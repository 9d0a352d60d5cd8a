/** A level of Kubernetes' Pod Security Standards. */
export type PodSecurityLevel = 'privileged' | 'baseline' | 'restricted';

/** Labels of a namespace whose API server refuses pods beyond the level. It warns, and writes its audit log, by the same. */
export const podSecurityLabels = (level: PodSecurityLevel): Record<string, string> =>
  Object.fromEntries(['enforce', 'audit', 'warn'].map((mode) => [`pod-security.kubernetes.io/${mode}`, level]));

/** User and group of pods that need no privilege. */
export const NOBODY = 65532;

/**
 * securityContext of every pod of ours that needs no privilege; with UNPRIVILEGED on its containers it is `restricted`.
 * @param more fields of it
 */
export const asNobody = (more: { fsGroup?: number; fsGroupChangePolicy?: 'OnRootMismatch' } = {}): object => ({
  runAsNonRoot: true,
  runAsUser: NOBODY,
  runAsGroup: NOBODY,
  ...more,
  seccompProfile: { type: 'RuntimeDefault' },
});

/** securityContext of every container of ours that needs no privilege. */
export const UNPRIVILEGED = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
} as const;
