import type { ControlPlaneGroupSeen } from '../../../../providers/contract.ts';
import type { EtcdMember } from '../../../etcd/etcd-client.ts';
import { conditionIsTrue, type Node } from '../../../kube/resources.ts';
import type { ControlPlaneGroupObservation } from '../../../shoot/control-plane-group.ts';
import { upgradeProblem } from '../../kubernetes-version.ts';
import { JOINED_LABEL } from './self-hosted-status.ts';

/** As for other machines of clouds: after that a token has expired with which it could have joined. */
const JOINING_MS = 75 * 60_000;
/** Machines renew their certificates when twelve days are left. One that has not done so two days later does not do it by itself. */
const CERTIFICATES_MS = 10 * 24 * 3600_000;
/** Clouds are late, and now and then show less than there is. */
const SURE_MS = 30_000;

/** Who is asked, besides the cloud, what there is of a control plane. */
interface GroupWitnesses {
  /** Of the control plane's pool, as they are now. */
  nodes: () => Node[];
  etcd: () => Promise<EtcdMember[] | undefined>;
}

/** What machines of a control plane are to be. */
export interface GroupWanted {
  /** How many. */
  readonly desired: number;
  /** Of Kubernetes, for example "1.36.3". */
  readonly version: string;
}

/**
 * Asks etcd last: a machine joins etcd before its node is marked, so one that comes in meanwhile is never taken for one that has joined and
 * left etcd again.
 * @param seen what the cloud has just said
 */
export async function lookAtGroup(
  seen: ControlPlaneGroupSeen,
  wanted: GroupWanted,
  now: Date,
  { nodes, etcd }: GroupWitnesses,
): Promise<ControlPlaneGroupObservation> {
  const before = nodes();
  return observation(seen, wanted, before, await etcd(), now);
}

/**
 * The machines by the names of their nodes, which are those of their etcd members, too: kubeadm names both after the host. What the cloud calls
 * a machine may be something else (Azure).
 */
function observation(
  { asked, machines }: ControlPlaneGroupSeen,
  { desired, version }: GroupWanted,
  nodes: readonly Node[],
  members: EtcdMember[] | undefined,
  now: Date,
): ControlPlaneGroupObservation {
  const others = ofOtherVersion(nodes, version);
  const nearEnd = members?.filter((member) => nearsEnd(member, now)) ?? [];
  return {
    desired,
    asked,
    members,
    nodes: nodes.map((node) => ({ name: node.metadata.name, ready: conditionIsTrue(node, 'Ready') })),
    machines: machines.map(({ nodeName, address, phase, createdAt, outdated = false, zone }) => ({
      name: nodeName,
      address,
      outdated: outdated || others.includes(nodeName) || nearEnd.some((member) => member.name === nodeName),
      zone,
      going: phase === 'Terminating',
      joined: nodes.some(({ metadata }) => metadata.name === nodeName && metadata.labels?.[JOINED_LABEL] !== undefined),
      overdue: now.getTime() - Date.parse(createdAt) > JOINING_MS,
    })),
  };
}

/** Kubernetes on the machine of a node, which installed it once and keeps it for life; undefined: the node does not tell yet. */
const installed = ({ status }: Node): string | undefined =>
  /^v(\d+\.\d+\.\d+)/.exec(status?.nodeInfo?.kubeletVersion ?? '')?.[1];

/** Nodes whose machines have another Kubernetes version than this one, by their names. Pure. */
export const ofOtherVersion = (nodes: readonly Node[], version: string): string[] =>
  nodes.filter((node) => (installed(node) ?? version) !== version).map(({ metadata }) => metadata.name);

/** Why machines cannot come to this version from the ones that they have still; undefined: they can. Pure. */
export function versionProblem(nodes: readonly Node[], version: string): string | undefined {
  for (const node of nodes) {
    const why = upgradeProblem(installed(node) ?? version, version);
    if (why) return `machine ${node.metadata.name} of the control plane is not upgraded yet: ${why}`;
  }
  return undefined;
}

/** The same with these machines outdated, too, as far as they are there still. Pure. */
export const withOutdated = (
  observed: ControlPlaneGroupObservation,
  names: readonly string[],
): ControlPlaneGroupObservation => ({
  ...observed,
  machines: observed.machines.map((one) => ({ ...one, outdated: one.outdated || names.includes(one.name) })),
});

/** Whether the certificates of its machine are about to end, of which kubeadm makes and renews all at once. */
const nearsEnd = ({ certificateEnds }: EtcdMember, now: Date): boolean =>
  certificateEnds !== undefined && +certificateEnds - +now < CERTIFICATES_MS;

/** What the cloud calls the machines of these nodes; one that is lost keeps the name of its node. Pure. */
export const machinesOfNodes = ({ machines }: ControlPlaneGroupSeen, nodes: readonly string[]): string[] =>
  nodes.map((node) => machines.find(({ nodeName }) => nodeName === node)?.name ?? node);

/**
 * Whether most of the machines are gone that the state of the cluster was on, pure: their disks are gone with them.
 * @param noted names of their nodes; none: nothing can have been lost
 */
export function isLost(noted: readonly string[], { machines }: ControlPlaneGroupSeen): boolean {
  const left = noted.filter((node) => machines.some(({ nodeName }) => nodeName === node));
  return noted.length > 0 && left.length < Math.floor(noted.length / 2) + 1;
}

/** Whether it has looked so for long enough to be said: a cluster that is said to be lost gets deleted. */
export class LossWatch {
  #since: number | undefined;

  /** @param looksLost whether the newest look says so */
  isSure(looksLost: boolean, now: Date): boolean {
    this.#since = looksLost ? (this.#since ?? now.getTime()) : undefined;
    return this.#since !== undefined && now.getTime() - this.#since >= SURE_MS;
  }
}

/** How long to sleep before the next look: clouds limit requests, and what is waited for takes minutes. */
export class Patience {
  static readonly #first = 3000;
  static readonly #last = 30_000;
  #for: string | undefined;
  #ms = 0;

  /** @param waitFor what is waited for; undefined: something was done */
  next(waitFor: string | undefined): number {
    const isSame = waitFor !== undefined && waitFor === this.#for;
    this.#for = waitFor;
    this.#ms = isSame ? Math.min(this.#ms * 1.25, Patience.#last) : Patience.#first;
    return this.#ms;
  }
}
