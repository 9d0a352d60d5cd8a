import type { Refusal } from './facts.ts';

/** All that it rests on whether a cluster may be used that answers behind a kubeconfig. */
interface IdentityView {
  /** UID of its namespace kube-system, as it says. */
  readonly seen: string;
  /** The one that it was first seen with; undefined: it never was. */
  readonly pinned: string | undefined;
  /** The one that a person approves in its place. */
  readonly approved: string | undefined;
  /** What of the platform has this UID ("the garden", "Seed here"); only asked for clusters that no administrator attached. */
  readonly platform: string | undefined;
  /** Who has the same cluster already. `own`: in the same namespace, whose people may know of it. */
  readonly holder: { readonly key: string; readonly own: boolean } | undefined;
  /** The annotation by which a person approves another cluster. */
  readonly annotation: string;
}

/** Why the cluster behind a kubeconfig is not used; undefined: it is. Pure. */
export function judgeIdentity(view: IdentityView): Refusal | undefined {
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
