import { NO_CONTROL_PLANE } from '../../api/conditions.ts';
import { ANNOTATIONS } from '../../api/group.ts';
import type { Membership } from '../../api/membership.ts';
import type { Condition, KubeObject } from '../../api/meta.ts';
import { METRICS, type Quota } from '../../api/quota.ts';
import { controlPlaneWorker, isIgnored, type Shoot } from '../../api/shoot.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { actionOf, isWell } from '../actions.ts';
import {
  activityText,
  conditionOf,
  isReady,
  isSimulated,
  readinessText,
  showsNoControlPlane,
  summaryText,
} from '../clusterview.ts';
import { ageOf } from './age.ts';
import { costSentence } from './cost.ts';
import type { Cell } from './table.ts';
import { textCell } from './text.ts';
import type { TreeNode } from './tree.ts';

/** One workload of a hosted control plane. */
export interface ControlPlaneWorkload {
  /** `StatefulSet/etcd-main` */
  name: string;
  desired: number;
  ready: number;
  /** Present if the workload is not healthy. */
  problem?: string;
  since?: string;
}

/** A machine of a pool, and its node. */
export interface MachineDescription {
  name: string;
  pool: string;
  ready: Condition['status'];
  reason: string;
  message: string;
  since?: string | undefined;
}

/** Input of `describe`. */
export interface ClusterDescription {
  cluster?: WorkerCluster | undefined;
  shoot?: Shoot | undefined;
  controlPlane: ControlPlaneWorkload[];
  machines: MachineDescription[];
  /** Memberships of the cluster. */
  memberships?: readonly Membership[];
  /** What could not be read, and why. */
  gaps: string[];
}

interface DescribeOptions {
  /** Milliseconds since the epoch. */
  now: number;
  allConditions?: boolean;
  grouping?: boolean;
}

export const TREE_HEADER = ['NAME', 'REPLICAS', 'READY', 'REASON', 'SINCE', 'MESSAGE'];
/** Conditions that need attention, and how they are shown. */
const LOUD: ReadonlyMap<string, string> = new Map([
  ['Simulated', 'SIMULATED'],
  [NO_CONTROL_PLANE, 'NO CONTROL PLANE'],
]);
const GROUP_FROM = 4;
const NAMES_SHOWN = 3;

/** The tree of a cluster: WorkerCluster, hubs, Shoot, control plane, pools, machines. */
export function describeTree(picture: ClusterDescription, options: DescribeOptions): TreeNode {
  const { cluster, shoot } = picture;
  const shootNode = shoot && objectNode(shoot, seedOf(shoot), partsOf(picture, options), options);
  if (cluster === undefined) return shootNode ? withAction(shoot, shootNode) : { cells: ['nothing'] };
  return withAction(
    cluster,
    objectNode(
      withoutRepeated(cluster, shoot),
      undefined,
      [
        ...costNodes(cluster, options),
        ...networkNodes(cluster),
        ...hubNodes(picture.memberships ?? [], options),
        ...(shootNode ? [shootNode] : partsOf(picture, options)),
      ],
      options,
    ),
  );
}

/** A tree whose first entry is the action for condition Ready. */
const withAction = (object: KubeObject, node: TreeNode): TreeNode => ({
  ...node,
  children: [...actionNodes(object, conditionOf(object, 'Ready')), ...(node.children ?? [])],
});

function costNodes(cluster: WorkerCluster, { now }: DescribeOptions): TreeNode[] {
  const cost = cluster.status?.cost;
  if (!cost) return [];
  const sentence = costSentence(cost, now);
  return [
    {
      cells: [
        'Cost',
        '',
        '',
        '',
        '',
        textCell(isSimulated(cluster) ? `nothing is billed; at the prices of the profile: ${sentence}` : sentence),
      ],
    },
  ];
}

/** Address ranges, and the cluster's identity in its mesh. */
function networkNodes({ status }: WorkerCluster): TreeNode[] {
  const { pods, services, mesh, clusterID, clusterName } = status?.networking ?? {};
  const parts = [
    pods && `pods ${pods}`,
    services && `Services ${services}`,
    mesh && `id ${clusterID} in mesh ${mesh}, as ${clusterName}`,
  ].filter((part) => part !== undefined && part !== '');
  return parts.length > 0 ? [{ cells: ['Network', '', '', '', '', textCell(parts.join('; '))] }] : [];
}

/** A line per hub of the cluster, with what its next step waits for. */
const hubNodes = (memberships: readonly Membership[], options: DescribeOptions): TreeNode[] =>
  memberships.map((membership) => {
    const { spec, status, metadata } = membership;
    const state = metadata.deletionTimestamp ? 'Leaving' : (status?.state ?? 'Pending');
    const since = ageOf(status?.since ?? metadata.creationTimestamp, options.now);
    return {
      cells: [`Hub/${spec.hub}`, '', readyMark(readinessText(membership)), state, since, textCell(status?.waiting)],
    };
  });

/** The cluster without conditions that its Shoot has with the same text: the Shoot's lines show them. */
function withoutRepeated(cluster: WorkerCluster, shoot: Shoot | undefined): WorkerCluster {
  const conditions = cluster.status?.conditions;
  if (shoot === undefined || conditions === undefined) return cluster;
  const own = conditions.filter((condition) => {
    const theirs = conditionOf(shoot, condition.type);
    const repeated = theirs?.status === condition.status && theirs.message === condition.message;
    return condition.type === 'Ready' || LOUD.has(condition.type) || !repeated;
  });
  return { ...cluster, status: { ...cluster.status, conditions: own } };
}

/** Tree of an object of any kind: the object and its conditions. */
export function objectTree(object: KubeObject, options: DescribeOptions): TreeNode {
  const children = object.kind === 'Quota' ? limitNodes(object as Quota) : [];
  return withAction(object, objectNode(object, undefined, children, options));
}

/** Used and allowed amount, one line per metric. */
const limitNodes = ({ spec, status }: Quota): TreeNode[] =>
  METRICS.filter((metric) => spec.metrics[metric] !== undefined).map((metric) => {
    const currency = metric.startsWith('cost.') ? ` ${spec.currency}` : '';
    return { cells: [metric, textCell(`${status?.used?.[metric] ?? '?'}/${spec.metrics[metric]}${currency}`)] };
  });

const seedOf = (shoot: Shoot): string | undefined => shoot.status?.seedName ?? shoot.spec.seedName;

function objectNode(
  object: KubeObject,
  seed: string | undefined,
  children: TreeNode[],
  options: DescribeOptions,
): TreeNode {
  const ready = conditionOf(object, 'Ready');
  const conditions = conditionNodes(object, options);
  const doing = isReady(object) ? '' : activityText(object);
  // A condition below has the same text: show it there only.
  const isSaidBelow = conditions.some(({ cells }) => cells.at(-1) === doing);
  const name: Cell = { text: `${object.kind}/${object.metadata.name}${seed ? ` (seed ${seed})` : ''}`, tone: 'strong' };
  return {
    cells: [
      name,
      '',
      readyMark(readinessText(object)),
      textCell(ready?.reason) || summaryText(object).text,
      ageOf(ready?.lastTransitionTime ?? object.metadata.creationTimestamp, options.now),
      isSaidBelow ? '' : doing,
    ],
    children: [...conditions, ...children],
  };
}

function conditionNodes(object: KubeObject, { now, allConditions }: DescribeOptions): TreeNode[] {
  const conditions = ((object.status as { conditions?: Condition[] } | undefined)?.conditions ?? []).filter(
    ({ type }) => type !== 'Ready',
  );
  return conditions.flatMap((condition) => {
    const { type, status, reason, message, lastTransitionTime } = condition;
    const isLoud = LOUD.has(type) && status === 'True';
    const good = isWell(condition);
    if (good && !allConditions) return [];
    const tone = isLoud ? 'loud' : good ? 'good' : status === 'Unknown' ? 'busy' : 'bad';
    const label: Cell = { text: isLoud ? LOUD.get(type)! : type, tone };
    const cells = [
      label,
      '',
      { text: status, tone } as Cell,
      textCell(reason),
      ageOf(lastTransitionTime, now),
      // The warning above the tree has this text.
      type === 'Simulated' && isLoud && object.kind === 'WorkerCluster' ? '' : textCell(message),
    ];
    return [{ cells, children: isLoud || isRepeated(object, condition) ? [] : actionNodes(object, condition) }];
  });
}

/** Whether condition Ready, at the top, asks for the same action. */
const isRepeated = (object: KubeObject, condition: Condition): boolean =>
  actionOf(object, condition) === actionOf(object, conditionOf(object, 'Ready'));

/** Action for a condition that is not good. */
function actionNodes(object: KubeObject, condition: Condition | undefined): TreeNode[] {
  const action = actionOf(object, condition);
  return action === undefined ? [] : [{ cells: ['To do', '', '', '', '', action] }];
}

const IGNORED: TreeNode = {
  cells: [
    { text: 'Ignored', tone: 'loud' },
    '',
    '',
    '',
    '',
    `the operator leaves this Shoot alone, and its status gets old, until somebody removes the annotation ${ANNOTATIONS.ignore}`,
  ],
};

function partsOf(picture: ClusterDescription, options: DescribeOptions): TreeNode[] {
  const nodes: TreeNode[] = [];
  const { controlPlane, machines, shoot } = picture;
  if (shoot && isIgnored(shoot)) nodes.push(IGNORED);
  if (shoot && showsNoControlPlane(shoot)) return poolsWithoutControlPlane(shoot);
  if (controlPlane.length > 0) {
    nodes.push({
      cells: ['ControlPlane', '', readyMark(allReady(controlPlane.map((part) => part.ready >= part.desired)))],
      children: controlPlane.map((part) => ({
        cells: [
          part.name,
          `${part.ready}/${part.desired}`,
          readyMark(part.ready >= part.desired ? 'True' : 'False'),
          '',
          part.since === undefined ? '' : ageOf(part.since, options.now),
          textCell(part.problem),
        ],
      })),
    });
  }
  const own = shoot && controlPlanePoolOf(shoot);
  if (own !== undefined) nodes.push(controlPlaneOnMachines(picture, own, options));
  const workers = machines.filter((machine) => machine.pool !== own);
  const wanted = wantedOf(picture);
  if (own !== undefined) wanted.delete(own);
  const pools = poolNodes(workers, wanted, options);
  if (pools.length > 0) {
    const good = workers.filter((machine) => machine.ready === 'True').length;
    const pooled = [...wanted.values()].reduce((sum, count) => sum + count, 0);
    const counted = picture.cluster?.status?.nodes?.desired ?? picture.shoot?.status?.nodes?.desired;
    const desired = counted ?? Math.max(pooled, workers.length);
    const state = readyMark(good >= desired ? 'True' : 'False');
    nodes.push({ cells: ['Workers', `${good}/${desired}`, state], children: pools });
  }
  for (const gap of picture.gaps) {
    nodes.push({ cells: [{ text: 'not seen', tone: 'busy' }, '', readyMark('Unknown'), '', '', textCell(gap)] });
  }
  return nodes;
}

/** Name of the pool whose machines run the control plane. */
const controlPlanePoolOf = ({ spec }: Shoot): string | undefined =>
  spec.provider === undefined ? undefined : controlPlaneWorker(spec)?.name;

function controlPlaneOnMachines(picture: ClusterDescription, pool: string, options: DescribeOptions): TreeNode {
  const own = picture.machines.filter((machine) => machine.pool === pool);
  const desired = wantedOf(picture).get(pool) ?? own.length;
  const [{ cells, children } = { cells: [] }] = poolNodes(own, new Map([[pool, desired]]), options);
  return { cells: ['ControlPlane', ...cells.slice(1)], ...(children && { children }) };
}

/** Pools from the status, for a cluster without a control plane. */
const poolsWithoutControlPlane = ({ status }: Shoot): TreeNode[] =>
  (status?.workers ?? []).map(({ name, ready, desired }) => ({
    cells: [`Pool/${name} (objects only)`, `${ready}/${desired}`, readyMark(ready >= desired ? 'True' : 'False')],
  }));

/** Wanted machines by pool. */
function wantedOf({ shoot }: ClusterDescription): Map<string, number> {
  const wanted = new Map((shoot?.spec.provider?.workers ?? []).map((worker) => [worker.name, worker.minimum]));
  for (const worker of shoot?.status?.workers ?? []) wanted.set(worker.name, worker.desired);
  return wanted;
}

function poolNodes(
  machines: readonly MachineDescription[],
  wanted: ReadonlyMap<string, number>,
  options: DescribeOptions,
): TreeNode[] {
  const names = [...new Set([...wanted.keys(), ...machines.map((machine) => machine.pool)])];
  return names.map((name) => {
    const own = machines.filter((machine) => machine.pool === name).sort((a, b) => compareNames(a.name, b.name));
    const good = own.filter((machine) => machine.ready === 'True').length;
    const desired = wanted.get(name) ?? own.length;
    const state = readyMark(good >= desired ? 'True' : 'False');
    const waiting = desired > own.length ? `${desired - own.length} not created yet` : '';
    return {
      cells: [`Pool/${name}`, `${good}/${desired}`, state, '', '', waiting],
      children: machineNodes(own, options),
    };
  });
}

function machineNodes(machines: MachineDescription[], options: DescribeOptions): TreeNode[] {
  const groups = new Map<string, MachineDescription[]>();
  for (const machine of machines) {
    const key = JSON.stringify([machine.ready, machine.reason, machine.message.replaceAll(machine.name, '')]);
    groups.set(key, [...(groups.get(key) ?? []), machine]);
  }
  return [...groups.values()].flatMap((group): TreeNode[] => {
    if (options.grouping === false || group.length < GROUP_FROM) {
      return group.map((machine) => machineNode(`Machine/${machine.name}`, machine, machine.message, options));
    }
    const names = group.slice(0, NAMES_SHOWN).map((machine) => machine.name);
    const oldest = group.reduce((a, b) => ((a.since ?? '~') < (b.since ?? '~') ? a : b));
    const text = [group[0]!.message, `see ${names.join(', ')}, ...`].filter((part) => part !== '').join('; ');
    return [machineNode(`${group.length} Machines...`, oldest, text, options)];
  });
}

function machineNode(name: string, machine: MachineDescription, message: string, { now }: DescribeOptions): TreeNode {
  const since = machine.since === undefined ? '' : ageOf(machine.since, now);
  return { cells: [name, '', readyMark(machine.ready), textCell(machine.reason), since, textCell(message)] };
}

function readyMark(status: Condition['status']): Cell {
  return { text: status, tone: status === 'True' ? 'good' : status === 'False' ? 'bad' : 'busy' };
}

const allReady = (parts: boolean[]): Condition['status'] => (parts.every(Boolean) ? 'True' : 'False');

/** Order of machine names: machine-2 before machine-10. */
function compareNames(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true });
}

/** Whether the warning about simulation belongs above the tree. */
export const picturesSimulated = ({ cluster }: ClusterDescription): boolean =>
  cluster !== undefined && isSimulated(cluster);
