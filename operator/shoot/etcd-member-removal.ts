import type { EtcdMember } from '../etcd/etcd-client.ts';

/** The next step, or the obstacle, of a member's removal from etcd. */
export type MemberRemoval =
  | { action: { type: 'transfer-leadership'; from: string; to: string } | { type: 'remove-member'; id: string } }
  | { waitFor: string; blocked?: true };

/** Message on an etcd member that is no machine or pod of the control plane, with advice. Pure. */
export const foreignMember = ({ id, name, peerURLs }: EtcdMember): string =>
  `etcd has member ${name || id} at ${peerURLs.join(', ')}, which Coppice did not add: remove it with etcdctl`;

/**
 * The next step of a member's removal from etcd. Pure. It is removed only while the remaining members keep an answering
 * majority, after it has transferred leadership.
 * @param members all members; the first healthy one becomes the leader
 * @param called the member's name for messages
 */
export function planMemberRemoval(going: EtcdMember, members: readonly EtcdMember[], called: string): MemberRemoval {
  const remove: MemberRemoval = { action: { type: 'remove-member', id: going.id } };
  if (going.learner) return remove;
  const staying = members.filter((member) => !member.learner && member.id !== going.id);
  if (staying.length === 0) return { waitFor: 'none of the etcd members that should stay is there', blocked: true };
  const healthy = staying.filter((member) => member.healthy);
  if (healthy.length < Math.floor(staying.length / 2) + 1)
    return { waitFor: `more etcd members to answer: without member ${called} too few would` };
  if (!going.leader) return remove;
  return { action: { type: 'transfer-leadership', from: going.id, to: healthy[0]!.id } };
}
