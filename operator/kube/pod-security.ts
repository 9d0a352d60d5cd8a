/** A level of Kubernetes' Pod Security Standards. */
export type PodSecurityLevel = 'privileged' | 'baseline' | 'restricted';

/**
 * Labels of a namespace in which the API server refuses pods beyond the level, and warns and audits at the same level.
 */
export const podSecurityLabels = (level: PodSecurityLevel): Record<string, string> =>
  Object.fromEntries(['enforce', 'audit', 'warn'].map((mode) => [`pod-security.kubernetes.io/${mode}`, level]));

/** User and group ID of pods without privileges. */
export const NOBODY = 65532;

/**
 * securityContext of every pod of ours without privileges; with UNPRIVILEGED on its containers the pod is `restricted`.
 * @param more further fields
 */
export const asNobody = (more: { fsGroup?: number; fsGroupChangePolicy?: 'OnRootMismatch' } = {}): object => ({
  runAsNonRoot: true,
  runAsUser: NOBODY,
  runAsGroup: NOBODY,
  ...more,
  seccompProfile: { type: 'RuntimeDefault' },
});

/** securityContext of every container of ours without privileges. */
export const UNPRIVILEGED = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
} as const;
