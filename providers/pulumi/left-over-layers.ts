import { CoppiceError } from '../../operator/api/errors.ts';
import type {
  CloudContext,
  ControlPlaneInputs,
  EndpointInputs,
  MachinePool,
  MachinesInputs,
  ManagedClusters,
  TaggedResource,
  WantedCluster,
} from '../cloud.ts';
import { UNMADE_POOL } from './control-plane-layers.ts';
import { type LayeredCloud, requestFor } from './layers.ts';
import type { StackRunner } from './stack-runner.ts';

/** Name of the control plane's machine group (operator/api/names.ts: CONTROL_PLANE_WORKER). */
const CONTROL_PLANE = 'control-plane';
/** Port of API servers on machines, never changed (providers/machines/control-plane-group.ts). */
const PORT = 6443;
/**
 * Types of managed clusters in `tagged`. Pools of GKE and AKS are deleted with their cluster; EKS refuses to delete a
 * cluster with node groups.
 */
const MANAGED = ['eks:cluster', 'container.googleapis.com/cluster', 'microsoft.containerservice/managedclusters'];

/** Form in `tagged`: `arn:aws:eks:eu-central-1:1:nodegroup/<cluster>/<name>/<uuid>`. */
const NODE_GROUP = 'eks:nodegroup';

/** Facts about an orphaned owner, from tags. */
interface LeftOver {
  isManaged: boolean;
  /** Zones of the network, if the tags tell. */
  zones: string[];
  controlPlane: MachinePool;
  /** Pools, also of a managed cluster; one being replaced occurs twice. */
  pools: MachinePool[];
  /** Ids of node groups in clusters without our tags: the clusters were adopted, and the receipt is lost. */
  elsewhere: string[];
  /** Templates without a group, or surplus ones of a group: deleted after all groups. */
  loose: MachinePool[];
}

/** Deletes all layers that an owner can have, from top to bottom; see ManagedClusters.destroyLeftOvers. */
export function leftOverLayers(
  runner: StackRunner,
  cloud: LayeredCloud,
  managed: Required<Pick<ManagedClusters, 'tagged' | 'destroy'>>,
): NonNullable<ManagedClusters['destroyLeftOvers']> {
  return async (ctx: CloudContext, place: WantedCluster) => {
    const { owner, region } = ctx;
    const left = leftOver((await managed.tagged(ctx)).filter((one) => one.owner.uid === owner.uid));
    // The network's deletion would leave these node groups broken.
    if (left.elsewhere.length > 0) throw inTheirCluster(left.elsewhere);
    const zones = left.zones.length > 0 ? left.zones : place.zones;
    if (!left.isManaged) {
      // Deleting programs need no outputs of lower layers: names and tags find their resources.
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
    // With `asleep` a cluster declares all its resources, whatever its pools are.
    await managed.destroy(ctx, { ...place, zones, pools: left.isManaged ? left.pools : [], asleep: true });
  };
}

/** Placeholder endpoint, so that resources shared by all machines of a cluster are left to the layer `endpoint`. */
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

/** Pure. @param tagged resources with the tags of one owner */
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
  /** One entry for each node group of the pool, or one for its other resources. */
  const poolsOf = (name: string): MachinePool[] => {
    const [own, ...more] = (nodeGroups.get(`pool-${name}`) ?? []).map(({ id }) => id.split('/')[2]!);
    if (own === undefined) return [pool(name)];
    return [{ ...pool(name), nodeGroup: own }, ...more.map((nodeGroup) => ({ ...looseOne(nodeGroup), nodeGroup }))];
  };
  const names = [...new Set([...parts('pool'), ...templates.keys()])].sort();
  // At AWS the template of the first control plane machine, which contained keys, is separate from the group's.
  const first = `${CONTROL_PLANE}-first`;
  if (names.includes(first)) loose.push({ ...UNMADE_POOL, name: first });
  return {
    isManaged: tagged.some(({ type }) => MANAGED.includes(type.toLowerCase())),
    // Zones with a NAT gateway come first, in the order of their creation.
    zones: [...new Set([...parts('nat').sort(), ...parts('private').sort()])],
    elsewhere: [...nodeGroups.values()].flat().flatMap(({ id }) => (own.has(id.split('/')[1]) ? [] : [id])),
    controlPlane: pool(CONTROL_PLANE),
    pools: names.filter((name) => name !== CONTROL_PLANE && name !== first).flatMap(poolsOf),
    loose,
  };
}

/**
 * Names of templates and node groups end in a hash, which becomes the pool's name, because pool names have at most 12
 * characters.
 */
const looseOne = (name: string): MachinePool => ({ ...UNMADE_POOL, name: `left-${name.slice(-8)}` });
