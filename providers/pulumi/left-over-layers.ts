import { CoppiceError } from '../../operator/api/errors.ts';
import type {
  CloudContext,
  ControlPlaneInputs,
  EndpointInputs,
  MachinePool,
  MachinesInputs,
  ManagedCluster,
  ManagedClusters,
  TaggedResource,
} from '../cloud.ts';
import { UNMADE_POOL } from './control-plane-layers.ts';
import { type LayeredCloud, requestFor } from './layers.ts';
import type { StackRunner } from './stack-runner.ts';

/** Of the one group of machines that a control plane of ours is on (operator/api/names.ts: CONTROL_PLANE_WORKER). */
const CONTROL_PLANE = 'control-plane';
/** Of API servers on machines, as ever since there are any (providers/machines/control-plane-group.ts). */
const PORT = 6443;
/** Types of managed clusters, as `tagged` has them. GKE's and AKS' pools go with their cluster; EKS deletes none that has node groups. */
const MANAGED = ['eks:cluster', 'container.googleapis.com/cluster', 'microsoft.containerservice/managedclusters'];

/** As `tagged` has it: `arn:aws:eks:eu-central-1:1:nodegroup/<cluster>/<name>/<uuid>`. */
const NODE_GROUP = 'eks:nodegroup';

/** What tags tell of machines that nobody remembers. */
export interface LeftOver {
  isManaged: boolean;
  /** Zones of the network, where they tell. */
  zones: string[];
  controlPlane: MachinePool;
  /** Of a managed cluster as well; more than one of a pool that was being replaced. */
  pools: MachinePool[];
  /** Ids of node groups in clusters that bear no tags of ours: others made these, and our receipt of having taken them over is lost. */
  elsewhere: string[];
  /** Templates of no group any more, or of one that has another as well: they go when no group is left. */
  loose: MachinePool[];
}

/** Takes away all layers that an owner can have, from above to below; see ManagedClusters.destroyLeftOvers. */
export function leftOverLayers(
  runner: StackRunner,
  cloud: LayeredCloud,
  managed: Required<Pick<ManagedClusters, 'tagged' | 'destroy'>>,
): NonNullable<ManagedClusters['destroyLeftOvers']> {
  return async (ctx: CloudContext, place: ManagedCluster) => {
    const { owner, region } = ctx;
    const left = leftOver((await managed.tagged(ctx)).filter((one) => one.owner.uid === owner.uid));
    // What they are made of would go, and they would stay without.
    if (left.elsewhere.length > 0) throw inTheirCluster(left.elsewhere);
    const zones = left.zones.length > 0 ? left.zones : place.zones;
    if (!left.isManaged) {
      // Programs that only take away are not told what is below them: what they have is found by names and tags.
      const network = cloud.unmadeNetwork(zones, ctx);
      const common = { owner, region, zones, network };
      const machines = async (pools: MachinePool[]) => {
        const inputs: MachinesInputs = { ...common, pools, kubeletClients: [], endpoint: UNMADE };
        await runner.destroy(await requestFor(cloud, ctx, 'machines', inputs));
      };
      const controlPlane: ControlPlaneInputs = {
        ...common,
        endpoint: UNMADE,
        pool: { ...left.controlPlane, holdsKeys: false },
      };
      const endpoint: EndpointInputs = { ...common, port: PORT };
      await machines(left.pools);
      await runner.destroy(await requestFor(cloud, ctx, 'control-plane', controlPlane));
      if (left.loose.length > 0) await machines(left.loose);
      await runner.destroy(await requestFor(cloud, ctx, 'endpoint', endpoint));
    }
    // Asleep a cluster declares all that it can have, whatever its pools are.
    await managed.destroy(ctx, { ...place, zones, pools: left.isManaged ? left.pools : [], asleep: true });
  };
}

/** Stands for an endpoint, so that what all machines of a cluster share is left to the layer of that name, which has it if there is one. */
const UNMADE = {
  host: 'unmade',
  port: PORT,
  extra: {
    address: 'unmade',
    backendPool: 'unmade',
    securityGroup: 'unmade',
    serviceAccount: 'unmade',
    targetGroup: 'unmade',
  },
};

const inTheirCluster = (ids: readonly string[]): CoppiceError =>
  new CoppiceError('ERR_INFRA_DEPENDENCIES', `${ids.join(', ')}: in a cluster that others made`, {
    advice: 'Delete them there; if they are gone, sweep again when the cloud no longer lists them, in some minutes.',
  });

/** Pure. @param tagged what bears the tags of one owner */
export function leftOver(tagged: readonly TaggedResource[]): LeftOver {
  const parts = (kind: string): string[] => [
    ...new Set(tagged.flatMap(({ part }) => (part?.startsWith(`${kind}-`) ? [part.slice(kind.length + 1)] : []))),
  ];
  const templates = Map.groupBy(
    tagged.filter(({ part }) => part?.startsWith('template-')),
    ({ part }) => part!.slice('template-'.length),
  );
  const nodeGroups = Map.groupBy(
    tagged.filter(({ type }) => type === NODE_GROUP),
    ({ part }) => part,
  );
  const own = new Set(tagged.filter(({ type }) => type === 'eks:cluster').map(({ id }) => id.split('/')[1]));
  const loose: MachinePool[] = [];
  const pool = (name: string): MachinePool => {
    const [own, ...more] = (templates.get(name) ?? []).map(({ id }) => id.slice(id.lastIndexOf('/') + 1));
    templates.delete(name);
    for (const template of more) loose.push({ ...looseOne(template), template });
    return { ...UNMADE_POOL, name, ...(own !== undefined && { template: own }) };
  };
  /** One for each node group that the pool has, or for what else it has. */
  const poolsOf = (name: string): MachinePool[] => {
    const [own, ...more] = (nodeGroups.get(`pool-${name}`) ?? []).map(({ id }) => id.split('/')[2]!);
    if (own === undefined) return [pool(name)];
    return [{ ...pool(name), nodeGroup: own }, ...more.map((nodeGroup) => ({ ...looseOne(nodeGroup), nodeGroup }))];
  };
  const names = [...new Set([...parts('pool'), ...templates.keys()])].sort();
  // At AWS the template of a control plane's first machine, which held keys, is one beside that of the group.
  const first = `${CONTROL_PLANE}-first`;
  if (names.includes(first)) loose.push({ ...UNMADE_POOL, name: first });
  return {
    isManaged: tagged.some(({ type }) => MANAGED.includes(type.toLowerCase())),
    // Of more zones than have a way out of their own, those that have one come first, as they were made.
    zones: [...new Set([...parts('nat').sort(), ...parts('private').sort()])],
    elsewhere: [...nodeGroups.values()].flat().flatMap(({ id }) => (own.has(id.split('/')[1]) ? [] : [id])),
    controlPlane: pool(CONTROL_PLANE),
    pools: names.filter((name) => name !== CONTROL_PLANE && name !== first).flatMap(poolsOf),
    loose,
  };
}

/** Names of templates and node groups end in a hash; as a pool it is called by that, longer than names of pools are (12 characters). */
const looseOne = (name: string): MachinePool => ({ ...UNMADE_POOL, name: `left-${name.slice(-8)}` });
