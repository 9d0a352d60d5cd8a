import type { EtcdMember } from '../etcd/etcd-client.ts';

/** What has to be done, or to happen, before a member is no longer one of etcd's. */
export type MemberRemoval =
  | { action: { type: 'transfer-leadership'; from: string; to: string } | { type: 'remove-member'; id: string } }
  | { waitFor: string; blocked?: true };

/** That etcd has a member which is no machine or pod of the control plane, and what to do about it. Pure. */
export const foreignMember = ({ id, name, peerURLs }: EtcdMember): string =>
  `etcd has member ${name || id} at ${peerURLs.join(', ')}, which Coppice did not add: remove it with etcdctl`;

/**
 * The next step by which a member is removed from etcd, pure. It goes only while those that stay keep a majority that answers, and hands the
 * leadership over first.
 * @param members all of them; the first of them that answers becomes the leader
 * @param called what the member is called in words
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
