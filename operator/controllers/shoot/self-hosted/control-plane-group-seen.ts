import type { ControlPlaneGroupSeen } from '../../../../providers/contract.ts';
import type { EtcdMember } from '../../../etcd/etcd-client.ts';
import { conditionIsTrue, type Node } from '../../../kube/resources.ts';
import type { ControlPlaneGroupObservation } from '../../../shoot/control-plane-group.ts';
import { upgradeProblem } from '../../kubernetes-version.ts';
import { JOINED_LABEL } from './self-hosted-status.ts';

/** Time after which a machine's join token has expired, as for other machines in clouds. */
const JOINING_MS = 75 * 60_000;
/** Machines renew certificates twelve days before expiry; two days later they will not renew by themselves. */
const CERTIFICATES_MS = 10 * 24 * 3600_000;
/** Clouds' lists lag, and are sometimes incomplete. */
const SURE_MS = 30_000;

/** Further sources about a control plane, besides the cloud. */
interface GroupWitnesses {
  /** Present nodes of the control plane's pool. */
  nodes: () => Node[];
  etcd: () => Promise<EtcdMember[] | undefined>;
}

/** Desired control plane machines. */
export interface GroupWanted {
  /** Number. */
  readonly desired: number;
  /** Kubernetes version, for example "1.36.3". */
  readonly version: string;
}

/**
 * Observes the group, etcd last: a machine joins etcd before its node is labelled, so a joining machine never looks
 * like one that left etcd.
 * @param seen the cloud's present answer
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
 * Machines by node name, which equals the etcd member's name: kubeadm derives both from the host name. The cloud's name
 * may differ (Azure).
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

/** Kubernetes version of a node's machine, which never changes; undefined: not reported yet. */
const installed = ({ status }: Node): string | undefined =>
  /^v(\d+\.\d+\.\d+)/.exec(status?.nodeInfo?.kubeletVersion ?? '')?.[1];

/** Names of nodes with another Kubernetes version. Pure. */
export const ofOtherVersion = (nodes: readonly Node[], version: string): string[] =>
  nodes.filter((node) => (installed(node) ?? version) !== version).map(({ metadata }) => metadata.name);

/** Why machines cannot be upgraded to this version; undefined: they can. Pure. */
export function machineVersionProblem(nodes: readonly Node[], version: string): string | undefined {
  for (const node of nodes) {
    const why = upgradeProblem(installed(node) ?? version, version);
    if (why) return `machine ${node.metadata.name} of the control plane is not upgraded yet: ${why}`;
  }
  return undefined;
}

/** The observation with these existing machines marked as outdated. Pure. */
export const withOutdated = (
  observed: ControlPlaneGroupObservation,
  names: readonly string[],
): ControlPlaneGroupObservation => ({
  ...observed,
  machines: observed.machines.map((one) => ({ ...one, outdated: one.outdated || names.includes(one.name) })),
});

/** Whether the machine's certificates expire soon; kubeadm renews all at once. */
const nearsEnd = ({ certificateEnds }: EtcdMember, now: Date): boolean =>
  certificateEnds !== undefined && +certificateEnds - +now < CERTIFICATES_MS;

/** The cloud's names of these nodes' machines; a lost one keeps its node's name. Pure. */
export const machinesOfNodes = ({ machines }: ControlPlaneGroupSeen, nodes: readonly string[]): string[] =>
  nodes.map((node) => machines.find(({ nodeName }) => nodeName === node)?.name ?? node);

/**
 * Whether a majority of the recorded etcd machines is gone, and their disks with them. Pure.
 * @param noted recorded node names; empty: nothing can be lost
 */
export function isLost(noted: readonly string[], { machines }: ControlPlaneGroupSeen): boolean {
  const left = noted.filter((node) => machines.some(({ nodeName }) => nodeName === node));
  return noted.length > 0 && left.length < Math.floor(noted.length / 2) + 1;
}

/** Confirms a loss over time before it is reported: people delete a lost cluster. */
export class LossWatch {
  #since: number | undefined;

  /** @param looksLost result of the newest observation */
  isSure(looksLost: boolean, now: Date): boolean {
    this.#since = looksLost ? (this.#since ?? now.getTime()) : undefined;
    return this.#since !== undefined && now.getTime() - this.#since >= SURE_MS;
  }
}

/** Polling interval: clouds limit requests, and steps take minutes. */
export class CloudWait {
  static readonly #first = 3000;
  static readonly #last = 30_000;
  #for: string | undefined;
  #ms = 0;

  /** @param waitFor awaited state; undefined: a step was taken */
  next(waitFor: string | undefined): number {
    const isSame = waitFor !== undefined && waitFor === this.#for;
    this.#for = waitFor;
    this.#ms = isSame ? Math.min(this.#ms * 1.25, CloudWait.#last) : CloudWait.#first;
    return this.#ms;
  }
}
