import type { Problem, Provider } from '../../../providers/contract.ts';
import {
  ADDONS_READY,
  ENCRYPTION_KEY_ROTATING,
  findCondition,
  HIBERNATED,
  isTrue,
  KEYS_KEPT,
  NO_CONTROL_PLANE,
  WAKING,
} from '../../api/conditions.ts';
import { API_VERSION, FINALIZER, LABELS } from '../../api/group.ts';
import type { NormalPool } from '../../api/pools.ts';
import type { Shoot, ShootSpec } from '../../api/shoot.ts';
import { profileNameOf, type WorkerCluster } from '../../api/workercluster.ts';
import { HELD } from '../../clusters/deletion-gate.ts';
import { BACKUP_READY } from '../backup/conditions.ts';
import { conditionBefore, type Said, say } from '../conditions.ts';
import { DRIFTED } from '../drifted.ts';
import { RESOURCES_COUNTED } from '../resources-condition.ts';
import { problem } from '../spec-problems.ts';
import { keepsEnabled, sleepToldBy } from './hibernation.ts';
import { meshLabels } from './networking.ts';
import type { ModeRequest, ModeStrategy, Settled, SizedView, WorkerClusterView } from './view.ts';

/** Conditions of a Shoot that the WorkerCluster copies. */
const MIRRORED = [
  NO_CONTROL_PLANE,
  'APIServerAvailable',
  'ControlPlaneHealthy',
  'EveryNodeReady',
  'SystemComponentsHealthy',
  ADDONS_READY,
  'Draining',
  'Rolling',
  'DNSRecordsReady',
  ENCRYPTION_KEY_ROTATING,
  KEYS_KEPT,
  DRIFTED,
  BACKUP_READY,
  RESOURCES_COUNTED,
] as const;

/** Mode Hosted: the control plane runs as pods in a seed, by an owned Shoot. */
export const hosted: ModeStrategy = {
  limits({ cluster, provider }) {
    const members = cluster.spec.controlPlaneNodes;
    const problems =
      members > 3 ? [problem('controlPlaneNodes', `a hosted control plane has 1 or 3 members, not ${members}`)] : [];
    // Making a second cluster beside the adopted one would be worse than none.
    if (cluster.spec.adopt)
      problems.push(problem('adopt', 'only managed clusters can be taken over: use mode Managed, with credentialsRef'));
    return provider ? [...problems, ...credentialsProblems(cluster, provider)] : problems;
  },

  ask({ cluster, asleep }, settled) {
    return askForShoot(cluster, settled, { sleeps: asleep !== undefined });
  },

  observe(view) {
    const { cluster, shoot } = view;
    const ofShoot = shoot?.status;
    const current = shoot !== undefined && ofShoot?.observedGeneration === shoot.metadata.generation;
    const ready = isTrue(ofShoot?.conditions, 'Ready') && current;
    const reason = conditionBefore('Shoot', ofShoot?.conditions, 'Ready')?.reason ?? 'Creating';
    const nodes = ofShoot?.nodes;
    const endpoint = ofShoot?.advertisedAddresses?.[0];
    return {
      exists: shoot !== undefined,
      ready: say('Ready', ready, reason, readyMessage(view)),
      conditions: [...MIRRORED.map((type) => conditionBefore('Shoot', ofShoot?.conditions, type)), hibernated(view)],
      sleeps: isTrue(ofShoot?.conditions, HIBERNATED),
      errors: ofShoot?.lastErrors ?? [],
      usable: ['APIServerAvailable', NO_CONTROL_PLANE].some((type) => isTrue(ofShoot?.conditions, type)),
      status: {
        ...(ofShoot?.kubernetesVersion && { kubernetesVersion: ofShoot.kubernetesVersion }),
        ...(endpoint && { endpoint: endpoint.url }),
        ...(shoot && { shootRef: { name: cluster.metadata.name, namespace: shoot.metadata.namespace } }),
        ...(ofShoot?.controlPlane && { controlPlane: ofShoot.controlPlane }),
        ...(nodes && { nodes, dataPlaneNodes: nodes.current }),
        ...(ofShoot?.resource && { resource: ofShoot.resource }),
        ...(ofShoot?.lastOperation && { lastOperation: ofShoot.lastOperation }),
      },
    };
  },

  deletion({ shoot }) {
    if (!shoot) return { gone: true, begun: true, waiting: say('Deleting', true, 'Gone', 'nothing is left') };
    const said = conditionBefore('Shoot', shoot.status?.conditions, 'Deleting');
    const message =
      said?.message ?? `waiting for Shoot ${shoot.metadata.namespace}/${shoot.metadata.name} to be deleted`;
    return {
      gone: false,
      begun: shoot.metadata.deletionTimestamp !== undefined && said?.reason !== HELD,
      waiting: say('Deleting', true, said?.reason ?? 'WaitingForShoot', message, said?.codes),
      ...(shoot.metadata.deletionTimestamp ? {} : { deleteShoot: true }),
    };
  },
};

/** Message for a cluster that ran under an operator without hibernation. */
const NOT_ACTED_ON =
  'spec.hibernation.enabled was written when hosted clusters did not sleep: set it to false, then to true, to have this one sleep';

/** Condition Hibernated, once there are hibernation settings. */
function hibernated({
  cluster,
  shoot,
  asleep,
  keptAwake,
  maySleep,
  ordered,
}: SizedView): Said<'WorkerCluster'> | undefined {
  if (!maySleep) return undefined;
  const known = conditionBefore('Shoot', shoot?.status?.conditions, HIBERNATED);
  const { type, state } = shoot?.status?.lastOperation ?? {};
  const wakes = known !== undefined || (type === 'Wake' && state !== 'Succeeded');
  const byOrder = sleepToldBy(ordered);
  if (!cluster.spec.hibernation && !ordered && !wakes) return undefined;
  if (keptAwake) return say(HIBERNATED, false, 'FallingAsleep', `${keptAwake.message}${byOrder}`);
  if (asleep) {
    const said = known ?? say(HIBERNATED, false, 'FallingAsleep', 'the cluster is told to sleep');
    return { ...said, message: `${said.message}${byOrder}` };
  }
  return wakes
    ? say(HIBERNATED, false, WAKING, `its control plane is started, then its nodes come${byOrder}`)
    : say(HIBERNATED, false, 'Awake', `${keepsEnabled(cluster) ? NOT_ACTED_ON : 'the nodes match the spec'}${byOrder}`);
}

/** Problems of credentials for machines in a tenant's account. */
export function credentialsProblems({ spec }: WorkerCluster, { inCloud, name }: Provider): Problem[] {
  if (!inCloud || spec.credentialsRef) return [];
  const message = `machines of provider ${name} are made in an account of yours: name its credentials`;
  return [problem('credentialsRef', message)];
}

/** Mode-specific parts of a Shoot. */
interface ShootMode {
  /** Control plane pool; absent: a seed hosts it. */
  readonly controlPlane?: SettledPool;
  /** Whether it must sleep now. Absent: no. */
  readonly sleeps?: boolean;
}

/** The Shoot of a cluster. */
export function askForShoot(cluster: WorkerCluster, settled: Settled, mode: ShootMode): ModeRequest {
  const { controlPlane } = mode;
  const { profile, provider, region, version, ranges } = settled;
  const { pods, services, nodes } = ranges;
  const pools = [...(controlPlane ? [controlPlane] : []), ...settled.pools];
  const problems = provider.validate(
    { region, kubernetesVersion: version, networking: { pods, services, ...(provider.inCloud && { nodes }) }, pools },
    profile,
  );
  return { problems, shoot: shootFor(cluster, shootSpec(cluster, settled, mode), meshLabels(settled.known)) };
}

type SettledPool = NormalPool & { machineType: string };

function shootSpec(
  { spec, ...cluster }: WorkerCluster,
  settled: Settled,
  { controlPlane, sleeps }: ShootMode,
): ShootSpec {
  const { profile, provider, region, version, ranges } = settled;
  const pools = [...(controlPlane ? [controlPlane] : []), ...settled.pools];
  return {
    cloudProfile: { kind: 'CloudProfile', name: profileNameOf({ spec, ...cluster }) },
    region,
    kubernetes: { version },
    networking: { pods: ranges.pods, services: ranges.services, ...(provider.inCloud && { nodes: ranges.nodes }) },
    ...(spec.controlPlaneNodes > 1 && {
      controlPlane: { highAvailability: { failureTolerance: { type: 'node' } }, replicas: spec.controlPlaneNodes },
    }),
    provider: {
      type: profile.spec.type,
      workers: pools.map((pool) => ({
        name: pool.name,
        machine: { type: pool.machineType },
        minimum: pool.count,
        maximum: pool.count,
        maxSurge: 1,
        maxUnavailable: 0,
        ...(pool.zones.length > 0 && { zones: pool.zones }),
        ...(Object.keys(pool.labels).length > 0 && { labels: pool.labels }),
        ...(pool.taints.length > 0 && { taints: pool.taints }),
        ...(pool.startupTaints?.length && { startupTaints: pool.startupTaints }),
        ...(provider.inCloud && pool.spot && { providerConfig: { spot: true } }),
        ...(pool === controlPlane && { controlPlane: {} }),
      })),
    },
    ...(spec.dns && { dns: spec.dns }),
    ...(provider.inCloud && spec.drift && { drift: spec.drift }),
    // Schedules and wake holds are resolved here: a Shoot only gets the result.
    ...(sleeps && { hibernation: { enabled: true } }),
    ...(spec.maintenance && { maintenance: spec.maintenance }),
    ...(spec.addons && { addons: spec.addons }),
  };
}

function shootFor(cluster: WorkerCluster, spec: ShootSpec, labels: Record<string, string>): Shoot {
  const { name, namespace, uid } = cluster.metadata;
  return {
    apiVersion: API_VERSION,
    kind: 'Shoot',
    metadata: {
      name,
      namespace,
      // Created with the finalizer, which saves a write and leaves no gap.
      finalizers: [FINALIZER],
      labels: { [LABELS.workerCluster]: name, [LABELS.provider]: cluster.spec.cloudProvider ?? '', ...labels },
      ownerReferences: [
        { apiVersion: API_VERSION, kind: 'WorkerCluster', name, uid: uid!, controller: true, blockOwnerDeletion: true },
      ],
    },
    spec,
  };
}

function readyMessage({ shoot }: WorkerClusterView): string {
  if (!shoot) return 'the Shoot is being made';
  return (
    findCondition(shoot.status?.conditions, 'Ready')?.message ?? 'waiting for the operator to begin with the Shoot'
  );
}
