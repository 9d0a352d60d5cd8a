import type { AttachedRefusal } from './facts.ts';

/** Inputs of the decision whether the cluster behind a kubeconfig may be used. */
interface IdentityView {
  /** UID of its namespace kube-system, as reported. */
  readonly seen: string;
  /** Recorded UID; undefined: none. */
  readonly pinned: string | undefined;
  /** UID that a person approved as a replacement. */
  readonly approved: string | undefined;
  /** Part of the platform with this UID ("the garden", "Seed here"); only for clusters that tenants attached. */
  readonly platform: string | undefined;
  /** Another object with the same cluster. `own`: in the same namespace, whose users may know its name. */
  readonly holder: { readonly key: string; readonly own: boolean } | undefined;
  /** Annotation for approving another cluster. */
  readonly annotation: string;
}

/** Why the cluster behind a kubeconfig is not used; undefined: it is. Pure. */
export function judgeIdentity(view: IdentityView): AttachedRefusal | undefined {
  const { seen, pinned, approved, platform, holder, annotation } = view;
  if (platform !== undefined) {
    const message = `the kubeconfig points to ${platform}, which only administrators attach`;
    return { reason: 'PlatformCluster', message, code: 'ERR_CONFIGURATION_PROBLEM' };
  }
  if (holder) {
    const who = holder.own ? `WorkerCluster ${holder.key}` : 'a WorkerCluster of another namespace';
    const message = `${who} is the same cluster (UID of kube-system ${seen}): delete one of the two`;
    return { reason: 'SameCluster', message, code: 'ERR_CONFIGURATION_PROBLEM' };
  }
  if (pinned === undefined || pinned === seen || approved === seen) return undefined;
  return {
    reason: 'OtherCluster',
    message: `the kubeconfig points to another cluster (UID of kube-system ${seen}, not ${pinned}): nothing is done to it. Put back the kubeconfig, or annotate ${annotation}=${seen}`,
    code: 'ERR_CONFIGURATION_PROBLEM',
  };
}
