import type { HubCustomKind } from '../burst/clusters/model.ts';
import { SETTLE_MS } from '../controllers/burst/alike.ts';
import { rehearsedMemberOf } from './members.ts';
import type { RehearsedCluster, Simulation } from './state.ts';
import type { WorkKind } from './trace/trace-line.ts';
import { withLabels } from './work-model.ts';

/** The hub's knowledge of custom kinds: one object per kind, by which the planner recognizes equal workloads. */
export function customKinds({ clusters }: Simulation): (kind: WorkKind | undefined) => HubCustomKind | undefined {
  const known = new Map<string, HubCustomKind>();
  return (kind) => {
    if (!kind) return undefined;
    const key = JSON.stringify(kind);
    const found = known.get(key) ?? customKindOf(kind, [...clusters.values()].filter(hasJoined));
    known.set(key, found);
    return found;
  };
}

function customKindOf({ name, labels, isBroughtByHub }: WorkKind, joined: readonly RehearsedCluster[]): HubCustomKind {
  const serves = withLabels(labels) ?? (() => true);
  const members = joined.map(({ object, profile }) => rehearsedMemberOf(object!, profile));
  const servedBy = new Set(members.filter(serves).map((member) => member.name));
  return { kind: name, servedBy, isBroughtTo: (member) => isBroughtByHub && serves(member) };
}

/** Whether the hub knows the kinds that the cluster serves. Of a sleeping cluster it knew them before. */
const hasJoined = ({ object, serves, servesSince }: RehearsedCluster): boolean =>
  object !== undefined && (serves || servesSince > 0);

/** Members created from a candidate long enough ago that a policy takes the next one to be alike. */
export const membersAlikeTo = ({ clusters, now }: Simulation, candidate: string | undefined): readonly string[] =>
  candidate === undefined
    ? []
    : [...clusters.values()]
        .filter((one) => one.object && one.candidate === candidate && one.serves && one.servesSince + SETTLE_MS <= now)
        .map(({ manifest }) => manifest.metadata.name);
