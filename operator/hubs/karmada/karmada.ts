import type { HubSpec } from '../../api/hub.ts';
import { DEPLOYMENTS, RBAC_ROLES, ROLEBINDINGS, SECRETS } from '../../kube/resources.ts';
import {
  type ForeignEntry,
  type HubType,
  isForeign,
  type Member,
  type Reader,
  takenOver,
  type WantedObject,
} from '../contract.ts';
import { bindingWaitsFor, demandOf, namesClasses, withoutRoom } from './bindings.ts';
import {
  CLUSTER_NAMESPACE,
  CLUSTERS,
  clusterObject,
  countedBy,
  countsNodes,
  type Draining,
  freeOn,
  type KarmadaCluster,
  whyNotReady,
} from './cluster.ts';
import { customKindsOf } from './kinds.ts';
import { movableOn, workPlacedIn } from './placed-work.ts';
import { pull } from './pull.ts';
import { push } from './push.ts';
import {
  bindingsOf,
  CLUSTERRESOURCEBINDINGS,
  isOurKarmadaCluster,
  type KarmadaSeen,
  lookAtKarmada,
  priorityClassesOf,
  RESOURCEBINDINGS,
  worksNamespace,
} from './seen.ts';
import type { SyncMode } from './sync-mode.ts';

/** A foreign Cluster for the same cluster, with the Secrets it refers to where Coppice's would be. */
async function foreignEntryIn(hub: Reader, { id }: Member, { karmada }: HubSpec): Promise<ForeignEntry | undefined> {
  const clusters = (await hub.list(CLUSTERS)) as KarmadaCluster[];
  const found = clusters.find((one) => one.spec?.id === id && isForeign(one));
  if (!found) return undefined;
  const { name } = found.metadata;
  const { secretRef, impersonatorSecretRef, syncMode } = found.spec ?? {};
  const wanted = [`${CLUSTER_NAMESPACE}/${name}`, `${CLUSTER_NAMESPACE}/${name}-impersonator`];
  const refs = [secretRef, impersonatorSecretRef].flatMap((ref) =>
    ref && wanted.includes(`${ref.namespace}/${ref.name}`) ? [ref.name] : [],
  );
  const secrets = await Promise.all(refs.map((ref) => hub.get(SECRETS, ref, CLUSTER_NAMESPACE)));
  const whyNot = whyNotOurs(name, syncMode, karmada?.syncMode ?? 'Push');
  return {
    name,
    places: [
      takenOver(CLUSTERS, found),
      ...secrets.flatMap((secret) => (secret && isForeign(secret) ? [takenOver(SECRETS, secret)] : [])),
    ],
    ...(whyNot && { whyNot }),
  };
}

/** Two agents would both apply, and so would an agent and Karmada's push controllers. */
function whyNotOurs(name: string, found: string | undefined, wanted: 'Push' | 'Pull'): string | undefined {
  if (found !== 'Push') return `Cluster ${name} of the hub has an agent of somebody else's (syncMode ${found})`;
  return wanted === 'Pull' ? `Cluster ${name} of the hub is of syncMode Push, and the Hub of Pull` : undefined;
}

const NO_EVICTION = 'the Hub does not say that its Karmada moves work away: karmada.evicts';

const modeOf = ({ karmada }: HubSpec): SyncMode => (karmada?.syncMode === 'Pull' ? pull : push);

/** Karmada: a Cluster, and either an agent or push controllers that apply its Works in the member. */
export const karmadaHub: HubType<KarmadaSeen> = {
  type: 'Karmada',
  // // The namespace of a cluster's Works, `karmada-es-<name>`, must be a valid label.
  nameLimit: 48,
  watches: [CLUSTERS],
  writes: [
    { on: 'hub', resource: RBAC_ROLES },
    { on: 'hub', resource: ROLEBINDINGS },
    { on: 'member', resource: DEPLOYMENTS },
  ],
  dials: (spec) => modeOf(spec).dials,

  async validate(hub) {
    const missing: string[] = [];
    for (const kind of [CLUSTERS, RESOURCEBINDINGS])
      if (!(await hub.serves(kind))) missing.push(`${kind.plural}.${kind.group}/${kind.version}`);
    if (missing.length === 0) return [];
    return [`the hub serves no ${missing.join(', ')}: the kubeconfig has to be that of Karmada's own API server`];
  },

  identities: (member, spec) => modeOf(spec).identities(member, spec),
  foreignEntry: foreignEntryIn,
  observe: (hub, inside, member, spec) => lookAtKarmada(hub, inside, member, modeOf(spec)),

  join(member, spec, seen) {
    const { cluster, twin } = seen;
    const mode = modeOf(spec);
    const taken = twin && `Cluster ${twin} of the hub is the same cluster (id ${member.id}): let it leave there first`;
    const more = mode.registered(member, spec, seen);
    return [
      { type: 'IdentityReady' },
      { type: 'CredentialsReady', apply: mode.access(member, cluster) },
      {
        type: 'Registered',
        apply: taken ? [] : [clusterWanted(member, spec, cluster), ...more.apply],
        traces: isOurKarmadaCluster(member, cluster) ? [worksNamespace(member)] : [],
        waiting: taken ?? more.waiting ?? whyNotReady(member.name, cluster),
      },
      {
        type: 'CapacityVisible',
        waiting: countsNodes(cluster)
          ? undefined
          : `Karmada counts what nodes offer, and sees none of Cluster ${member.name} yet`,
      },
    ];
  },

  leave: (member, spec, seen) => modeOf(spec).removals(member, seen),

  drains: (spec, { placed }) => (spec.karmada?.evicts || placed.some(({ isEvicted }) => isEvicted) ? 'Moves' : 'None'),
  cordon: (member, spec, { cluster }) => (cluster ? [clusterWanted(member, spec, cluster)] : []),
  drain: (member, spec, { cluster }) => (cluster ? [clusterWanted(member, spec, cluster, 'begin')] : []),
  placements: (_member, { placed }) => placed.map(({ text }) => text),
  requeue: (_member, _spec, { overlooked }) => overlooked,
  release: (_member, _spec, { forsaken }) => forsaken,
  async demand(hub) {
    const bindings = await bindingsOf(hub);
    const waiting = withoutRoom(bindings);
    const classes = namesClasses(waiting) ? await priorityClassesOf(hub) : undefined;
    return demandOf(waiting, classes, await customKindsOf(hub, waiting, bindings));
  },
  async placedWork(hub, spec, member) {
    if (!spec.karmada?.evicts) return NO_EVICTION;
    const bindings = await bindingsOf(hub);
    const here = bindings.filter(({ binding }) => binding.spec?.clusters?.some(({ name }) => name === member));
    return movableOn(bindings, member, await customKindsOf(hub, here, bindings));
  },
  placed: async (hub) => workPlacedIn(await bindingsOf(hub)),
  demandWatch: { resources: [RESOURCEBINDINGS, CLUSTERRESOURCEBINDINGS], says: bindingWaitsFor },
  counts: countedBy,
  capacity: (_member, { cluster }) => freeOn(cluster),
};

const clusterWanted = (
  member: Member,
  spec: HubSpec,
  live: KarmadaCluster | undefined,
  draining?: Draining,
): WantedObject => ({
  on: 'hub',
  resource: CLUSTERS,
  object: clusterObject(member, live, modeOf(spec).reachedBy(member), draining),
  basedOn: live?.metadata.resourceVersion,
});
