import { readFileSync } from 'node:fs';
import { dependencyNotReady } from '../../operator/api/errors.ts';
import { ANNOTATIONS, LABELS, ROLES } from '../../operator/api/group.ts';
import { machineSetName, poolSecretName } from '../../operator/api/names.ts';
import { hasEnded } from '../../operator/kube/pods.ts';
import {
  conditionIsTrue,
  NODES,
  type Node,
  PODS,
  type Pod,
  REPLICASETS,
  type ReplicaSet,
  SECRETS,
} from '../../operator/kube/resources.ts';
import { applyIfChanged, ignoreGone } from '../apply.ts';
import {
  type ClusterNetwork,
  type Machine,
  type MachineVolumes,
  type Provider,
  type ProviderContext,
  sizeWhileRolling,
} from '../contract.ts';
import { directoryBuckets } from '../directory-buckets.ts';
import { followPool, type Marks, nodeLabels, nodesOf } from '../nodes.ts';
import { profileProblems } from '../validate.ts';
import { controlPlaneMachines } from './control-plane.ts';
import { machineOf } from './machine.ts';
import { machineFiles, PAUSE_IMAGE } from './machine-files.ts';
import {
  HOST_FOLDERS,
  hostFolderMounts,
  hostFolderVolumes,
  MARKS_ANNOTATION,
  poolReplicaSet,
  poolSecret,
} from './machine-pod.ts';

/**
 * Alternative name of a machine's container image: the pool's, or the seed's (`sha256:...` if loaded,
 * `repository@sha256:...` if pulled). kubelet restarts a container, keeping the pod's volumes, when its image name
 * changes (kubelet's HashContainer uses name and image only). Pure.
 * @throws CoppiceError when the seed does not report the running image
 */
function restartedImage({ metadata, spec, status }: Pod, set: ReplicaSet): string {
  const [container] = spec.containers;
  const ofPool: string = set.spec.template.spec.containers[0].image;
  if (container?.image !== ofPool) return ofPool;
  const running = status?.containerStatuses?.find(({ name }) => name === container.name)?.imageID;
  const found = /^(?:[^/]+:\/\/)?((?:[^@]+@)?sha256:[0-9a-f]{64})$/.exec(running ?? '')?.[1];
  if (!found) throw dependencyNotReady(`the seed does not say which image machine ${metadata.name} runs`);
  return found;
}

/** Volumes are folders below /var of a machine, which survives container restarts and is deleted with the pod. */
const machineVolumes: MachineVolumes = {
  folder: '/var/lib/coppice/volumes',
  // Our images have no shell; a machine sees that of the seed node. Every node has the pause image.
  helper: { image: PAUSE_IMAGE, folders: ['/bin', '/lib', '/lib64', '/usr'] },
};

const SCRIPT = readFileSync(new URL('./api-server-network.sh', import.meta.url), 'utf8');

/** Ends with the container at the latest. */
const WAIT = 'until [ -s "$EGRESS_FILE" ]; do sleep 0.02; done';

/**
 * Sidecar that joins an API server's pod to the VXLAN of the cluster's machines: sets interfaces, routes and firewall
 * rules, then waits, as PID 1 of the image that all pods of the seed run. undefined for another machine image, whose
 * seed may lack the programs or a common layer 2.
 */
function apiServerNetwork(ctx: Pick<ProviderContext, 'machineImage' | 'podCIDR' | 'vni'>): ClusterNetwork | undefined {
  if (ctx.machineImage) return undefined;
  return {
    container: {
      name: 'cluster-network',
      image: PAUSE_IMAGE,
      imagePullPolicy: 'IfNotPresent',
      command: ['/bin/bash', '-c', SCRIPT],
      // kubelet starts the API server after this hook, a second sooner than after an init container.
      lifecycle: { postStart: { exec: { command: ['/bin/bash', '-c', WAIT] } } },
      env: [
        { name: 'VNI', value: String(ctx.vni) },
        { name: 'POD_CIDR', value: ctx.podCIDR },
      ],
      resources: { requests: { cpu: '1m', memory: '1Mi' } },
      // Root in its pod's network namespace only.
      securityContext: {
        runAsNonRoot: false,
        runAsUser: 0,
        runAsGroup: 0,
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'], add: ['NET_ADMIN', 'NET_RAW'] },
      },
      volumeMounts: [...hostFolderMounts(HOST_FOLDERS), { name: 'run', mountPath: '/run' }],
    },
    // For iptables' lock.
    volumes: [...hostFolderVolumes(HOST_FOLDERS), { name: 'run', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } }],
  };
}

/** Machines are privileged pods of a ReplicaSet per pool, in the shoot's namespace of the seed. */
export const local: Provider = {
  name: 'local',
  simulated: false,
  noBoundary:
    "machines are privileged pods of the seed. Whoever runs pods in such a cluster can take over the seed's nodes and all clusters there",
  privilegedInSeed: true,
  needsBootstrapToken: true,
  rolledByCaller: true,
  backups: directoryBuckets('local'),
  machineVolumes,
  controlPlaneMachines,
  clusterNetwork: apiServerNetwork,

  validate(wanted, profile) {
    const problems = profileProblems(wanted, profile);
    wanted.pools.forEach((pool, index) => {
      const type = profile.spec.machineTypes.find((known) => known.name === pool.machineType);
      if (!type?.gpu || String(type.gpu) === '0') return;
      problems.push({
        field: `pools[${index}].machineType`,
        message: `local machines have no GPU, and machine type ${pool.machineType} asks for ${type.gpu}`,
        code: 'ERR_CONFIGURATION_PROBLEM',
      });
    });
    return problems;
  },

  async reconcilePool(ctx, pool) {
    // List nodes before pods: the node of a machine that starts in between must not look orphaned.
    const nodes = ctx.shoot ? await nodesOf(ctx.shoot, pool.name) : [];
    const pods = await podsOf(ctx, pool.name);
    const name = machineSetName(pool.name);
    const live = await ctx.seed.getOrUndefined<ReplicaSet>(REPLICASETS, name, ctx.namespace);
    if (pool.count === 0 && !live && nodes.length === 0) return;
    const files = machineFiles(ctx, pool);
    const [bootstrap, kubeProxy] = await Promise.all([ctx.bootstrapKubeconfig(pool.name), ctx.kubeProxyKubeconfig()]);
    await applyIfChanged(ctx.seed, poolSecret(ctx, pool, files, { bootstrap, kubeProxy }));

    const marks: Marks = { labels: nodeLabels(ctx, pool), taints: pool.taints };
    // A webhook of the cluster that refuses changes of nodes must not prevent new machines.
    const refusal = await tellNodes(ctx, pool.name, { nodes, pods }, marks, marksOf(live) ?? marks).then(
      () => undefined,
      (error: unknown) => ({ error }),
    );
    const told = (ctx.shoot && !refusal) || !live ? marks : (marksOf(live) ?? marks);
    const set = poolReplicaSet(ctx, pool, files, told);
    const alive = pods.filter(isAlive);
    const wanted = sizeWhileRolling(pool, alive.filter((pod) => isOutdated(pod, set)).length);
    set.spec.replicas = Math.max(wanted, Math.min(live?.spec.replicas ?? 0, alive.filter(hasStarted).length));
    await applyIfChanged(ctx.seed, set);
    if (refusal) throw refusal.error;
  },

  async withdrawMachines(ctx, pools) {
    for (const { name: pool, count, maxSurge = 0 } of pools) {
      const started = (await podsOf(ctx, pool)).filter((pod) => isAlive(pod) && hasStarted(pod)).length;
      const name = machineSetName(pool);
      const live = await ctx.seed.getOrUndefined<ReplicaSet>(REPLICASETS, name, ctx.namespace);
      const replicas = Math.max(count + maxSurge, started);
      if (!live || (live.spec.replicas ?? 0) <= replicas) continue;
      ctx.log.info({ pool, from: live.spec.replicas, to: replicas }, 'machines that have not started are withdrawn');
      await ignoreGone(ctx.seed.mergePatch(REPLICASETS, name, ctx.namespace, { spec: { replicas } }));
    }
  },

  async listMachines(ctx) {
    const pods = ctx.seen?.pods.filter((pod) => isMachineOf(ctx, pod)) ?? (await podsOf(ctx));
    if (pods.length === 0) return [];
    const selection = { namespace: ctx.namespace, labelSelector: machineSelector(ctx) };
    const sets = await ctx.seed.list<ReplicaSet>(REPLICASETS, selection);
    const byPool = new Map(sets.items.map((set) => [set.metadata.labels?.[LABELS.pool], set]));
    return pods.map((pod) => {
      const set = byPool.get(pod.metadata.labels?.[LABELS.pool]);
      return { ...machineOf(pod), ...(set && isOutdated(pod, set) && { outdated: true }) };
    });
  },

  async removeMachines(ctx, pool, names, remaining) {
    const name = machineSetName(pool);
    const going = new Set(names);
    const pods = await podsOf(ctx, pool);
    const end = (pod: Pod) => ctx.seed.delete(PODS, pod.metadata.name, ctx.namespace);
    // The ReplicaSet no longer counts a failed pod, but leaves it.
    for (const pod of pods.filter((one) => going.has(one.metadata.name) && hasEnded(one))) await end(pod);
    const alive = pods.filter(isAlive);
    const victims = alive.filter((pod) => going.has(pod.metadata.name));
    const staying = alive.filter((pod) => !going.has(pod.metadata.name));
    const set = await ctx.seed.getOrUndefined<ReplicaSet>(REPLICASETS, name, ctx.namespace);
    if (!set) return;
    const { status } = set;
    const settled =
      set.spec.replicas === remaining &&
      status?.observedGeneration === set.metadata.generation &&
      (status?.replicas ?? 0) <= remaining;
    if (settled) {
      // The ReplicaSet deleted other pods, which were not running yet, and replaces these.
      for (const pod of victims) await end(pod);
      return;
    }
    if (staying.some((pod) => !conditionIsTrue(pod, 'Ready'))) {
      // The ReplicaSet would choose others: readiness outweighs the deletion cost.
      for (const pod of victims) await end(pod);
    } else {
      for (const pod of victims) {
        if (pod.metadata.annotations?.[DELETION_COST] === FIRST) continue;
        await ignoreGone(
          ctx.seed.mergePatch(PODS, pod.metadata.name, ctx.namespace, {
            metadata: { annotations: { [DELETION_COST]: FIRST } },
          }),
        );
      }
    }
    if (set.spec.replicas !== remaining) {
      await ctx.seed.mergePatch(REPLICASETS, name, ctx.namespace, { spec: { replicas: remaining } });
    }
  },

  repair: {
    async restart(ctx, machine) {
      const pod = await podOf(ctx, machine);
      const set = await ctx.seed.getOrUndefined<ReplicaSet>(REPLICASETS, machineSetName(machine.pool), ctx.namespace);
      if (!pod || !set) return;
      await ignoreGone(
        ctx.seed.jsonPatch(PODS, pod.metadata.name, ctx.namespace, [
          { op: 'test', path: '/metadata/uid', value: pod.metadata.uid },
          { op: 'replace', path: '/spec/containers/0/image', value: restartedImage(pod, set) },
        ]),
      );
    },

    async replace(ctx, machine) {
      const pod = await podOf(ctx, machine);
      if (pod)
        await ctx.seed.delete(PODS, pod.metadata.name, ctx.namespace, { preconditions: { uid: pod.metadata.uid! } });
    },
  },

  async deletePool(ctx, name) {
    const options = { propagationPolicy: 'Background' } as const;
    await ctx.seed.delete(REPLICASETS, machineSetName(name), ctx.namespace, options);
    await ctx.seed.delete(SECRETS, poolSecretName(name), ctx.namespace);
    if (!ctx.shoot) return;
    for (const node of await nodesOf(ctx.shoot, name)) await ctx.shoot.delete(NODES, node.metadata.name);
  },

  async deleteAll(ctx) {
    const selection = { namespace: ctx.namespace, labelSelector: machineSelector(ctx) };
    await ctx.seed.deleteCollection(REPLICASETS, { ...selection, propagationPolicy: 'Background' });
    await ctx.seed.deleteCollection(SECRETS, selection);
  },
};

/** Updates the pool's nodes, and deletes those without a machine. */
async function tellNodes(
  ctx: ProviderContext,
  pool: string,
  { nodes, pods }: { nodes: readonly Node[]; pods: readonly Pod[] },
  wanted: Marks,
  before: Marks,
): Promise<void> {
  if (!ctx.shoot) return;
  const names = new Set(pods.map((pod) => pod.metadata.name));
  for (const node of nodes.filter((left) => !names.has(left.metadata.name))) {
    ctx.log.info({ node: node.metadata.name, pool }, 'node of a machine that is gone is removed');
    await ctx.shoot.delete(NODES, node.metadata.name, undefined, { preconditions: { uid: node.metadata.uid! } });
  }
  await followPool(
    ctx.shoot,
    nodes.filter((node) => names.has(node.metadata.name)),
    wanted,
    before,
  );
}

/** The ReplicaSet controller deletes pods with the lowest cost first. */
const DELETION_COST = 'controller.kubernetes.io/pod-deletion-cost';
const FIRST = '-1000';

const machineSelector = (ctx: ProviderContext, pool?: string): string => {
  const selector = `${LABELS.shoot}=${ctx.shootName},${LABELS.role}=${ROLES.machine}`;
  return pool === undefined ? selector : `${selector},${LABELS.pool}=${pool}`;
};

async function podsOf(ctx: ProviderContext, pool?: string): Promise<Pod[]> {
  return (await ctx.seed.list<Pod>(PODS, { namespace: ctx.namespace, labelSelector: machineSelector(ctx, pool) }))
    .items;
}

const podOf = async (ctx: ProviderContext, { name, pool }: Machine): Promise<Pod | undefined> =>
  (await podsOf(ctx, pool)).find((pod) => pod.metadata.name === name && isAlive(pod));

/** Only in the shoot's namespace: elsewhere tenants choose the labels. */
const isMachineOf = ({ namespace }: ProviderContext, { metadata }: Pod): boolean =>
  metadata.namespace === namespace && metadata.labels?.[LABELS.role] === ROLES.machine;

const isAlive = (pod: Pod): boolean => !pod.metadata.deletionTimestamp && !hasEnded(pod);

/** Whether the machine ever started: otherwise nothing runs on it, and its ReplicaSet deletes it first. */
const hasStarted = ({ status }: Pod): boolean => (status?.phase ?? 'Pending') !== 'Pending';

/** Whether the machine's description differs from that of new ones. */
const isOutdated = (pod: Pod, { spec }: ReplicaSet): boolean =>
  pod.metadata.annotations?.[ANNOTATIONS.checksum] !== spec.template.metadata.annotations[ANNOTATIONS.checksum];

function marksOf(set: ReplicaSet | undefined): Marks | undefined {
  const text = set?.metadata.annotations?.[MARKS_ANNOTATION];
  return text ? (JSON.parse(text) as Marks) : undefined;
}
