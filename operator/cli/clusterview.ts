import type { CloudProfile } from '../api/cloudprofile.ts';
import { HIBERNATED, NO_CONTROL_PLANE } from '../api/conditions.ts';
import type { CredentialsBinding } from '../api/credentialsbinding.ts';
import type { Condition, KubeObject, LastError, LastOperation } from '../api/meta.ts';
import type { Metric, Quota } from '../api/quota.ts';
import type { Seed } from '../api/seed.ts';
import type { Shoot } from '../api/shoot.ts';
import type { WorkerCluster } from '../api/workercluster.ts';
import { ageOf } from './render/age.ts';
import { accruedText, hourlyText } from './render/cost.ts';
import type { Cell } from './render/table.ts';
import { type Tone, textCell } from './render/text.ts';

/** Status fields that all kinds have, as far as the CLI shows them. */
interface CommonStatus {
  observedGeneration?: number;
  conditions?: Condition[];
  lastOperation?: LastOperation;
  lastErrors?: LastError[];
  phase?: string;
  simulated?: boolean;
}

const statusOf = (object: KubeObject): CommonStatus => (object.status ?? {}) as CommonStatus;

/** Condition of this type; undefined if the object lacks it. */
export function conditionOf(object: KubeObject, type: string): Condition | undefined {
  return statusOf(object).conditions?.find((condition) => condition.type === type);
}

/** `True`, `False` or `Unknown`, from condition Ready. */
export function readinessText(object: KubeObject): Condition['status'] {
  return conditionOf(object, 'Ready')?.status ?? 'Unknown';
}

/** Whether the status was written for the current spec. */
function isCurrent(object: KubeObject): boolean {
  const seen = statusOf(object).observedGeneration;
  return seen === undefined || seen >= (object.metadata.generation ?? 0);
}

/** Whether the object is Ready for its current spec. A Ready condition of an earlier generation does not count. */
export const isReady = (object: KubeObject): boolean =>
  object.metadata.deletionTimestamp === undefined && readinessText(object) === 'True' && isCurrent(object);

/** Whether the cluster hibernates as its spec asks. Ready is False then, and that is no fault. */
export const isShownAsleep = (object: KubeObject): boolean =>
  conditionOf(object, 'Ready')?.reason === HIBERNATED &&
  // Ready of a waking cluster keeps its reason until the Shoot reports another.
  conditionOf(object, HIBERNATED)?.status === 'True' &&
  isCurrent(object);

/** Reason why the operator waits for a person to change the object. Undefined: it does not. */
export function clusterFailureOf(object: KubeObject): string | undefined {
  const { lastOperation, lastErrors } = statusOf(object);
  if (!isCurrent(object)) return undefined;
  const accepted = conditionOf(object, 'SpecAccepted');
  if (accepted?.status === 'False') return textCell(accepted.message ?? 'its spec is refused');
  if (lastOperation?.state !== 'Failed') return undefined;
  return textCell(lastErrors?.map((error) => error.description).join('; ') || lastOperation.description || 'it failed');
}

/** Whether the nodes of the cluster are simulated. */
export function isSimulated(object: KubeObject): boolean {
  return statusOf(object).simulated === true || conditionOf(object, 'Simulated')?.status === 'True';
}

/** Whether the cluster has no control plane: nothing answers at the address in its kubeconfig. */
export const showsNoControlPlane = (object: KubeObject): boolean =>
  conditionOf(object, NO_CONTROL_PLANE)?.status === 'True';

/** Warning shown above everything else about a simulated cluster. */
export function simulatedWarning(cluster: WorkerCluster): string {
  const nodes = cluster.status?.nodes?.desired ?? cluster.spec.dataPlaneNodes;
  const what = nodes === undefined ? 'its nodes' : `its ${countText(nodes, 'node')}`;
  const are = nodes === 1 ? 'is pretended and runs' : 'are pretended and run';
  const detail = textCell(conditionOf(cluster, 'Simulated')?.message).replace(/^SIMULATED: /, '');
  const base = `SIMULATED: nothing of WorkerCluster ${cluster.metadata.name} exists at ${cluster.spec.cloudProvider}; ${what} ${are} no workload`;
  return detail === '' ? `${base}.` : `${base}; ${detail}`;
}

/** The `-n` option that a printed command needs for an object of this namespace. */
export const inNamespace = (namespace = 'default'): string => (namespace === 'default' ? '' : ` -n ${namespace}`);

export const countText = (amount: number, noun: string): string => `${amount} ${noun}${amount === 1 ? '' : 's'}`;

const DOING: Record<LastOperation['type'], string> = {
  Create: 'Creating',
  Reconcile: 'Updating',
  Delete: 'Deleting',
  Hibernate: 'Hibernating',
  Wake: 'Waking',
  Migrate: 'Migrating',
};

/** Text and tone of the STATUS column: one or two words. */
export function summaryText(object: KubeObject): { text: string; tone: Tone } {
  const { lastOperation, lastErrors, phase } = statusOf(object);
  const deleting = object.metadata.deletionTimestamp !== undefined;
  const doing = deleting ? 'Deleting' : lastOperation === undefined ? undefined : DOING[lastOperation.type];
  const state = lastOperation?.state;
  if (state === 'Failed') return { text: lastErrors?.[0]?.codes?.[0] ?? 'Failed', tone: 'bad' };
  if (state === 'Error') return { text: `${doing} (retrying)`, tone: 'bad' };
  if (state === 'Processing' || state === 'Pending')
    return { text: `${doing} ${lastOperation!.progress}%`, tone: 'busy' };
  if (deleting) return { text: 'Deleting', tone: 'busy' };
  const ready = conditionOf(object, 'Ready');
  if (phase === 'Ready' && conditionOf(object, 'SpecAccepted')?.status === 'False')
    return { text: 'Change refused', tone: 'bad' };
  if (phase) return { text: textCell(phase), tone: ready?.status === 'True' ? 'good' : 'busy' };
  if (ready === undefined) return { text: 'Pending', tone: 'busy' };
  if (ready.status === 'True') return { text: 'Ready', tone: 'good' };
  return { text: textCell(ready.reason) || 'NotReady', tone: ready.status === 'False' ? 'bad' : 'busy' };
}

/** What happens to the object now, in one line. */
export function activityText(object: KubeObject): string {
  const { lastOperation, lastErrors } = statusOf(object);
  if (lastOperation?.state === 'Error' || lastOperation?.state === 'Failed') {
    const errors = lastErrors?.map((error) => error.description).join('; ');
    return textCell(errors || lastOperation.description);
  }
  const ready = conditionOf(object, 'Ready');
  if (lastOperation?.state === 'Succeeded' && ready?.status !== 'True' && ready?.message)
    return textCell(ready.message);
  return textCell(lastOperation?.description || ready?.message || 'waiting for the operator');
}

const READY_TONE: Record<Condition['status'], Tone> = { True: 'good', False: 'bad', Unknown: 'busy' };

/** Cell of a READY column. */
function readyCell(status: Condition['status']): Cell {
  return { text: status, tone: READY_TONE[status] };
}

interface Columns {
  header: string[];
  row: (object: KubeObject, now: number) => (Cell | string)[];
}

/** Columns of a kind's table, without the namespace. `wide`: all columns. */
export function columnsOf(kind: string, wide: boolean): Columns {
  const columns = TABLES[kind] ?? GENERIC;
  const shown = columns.filter((column) => wide || !column.wide);
  return {
    header: shown.map((column) => column.title),
    row: (object, now) => shown.map((column) => column.value(object, now)),
  };
}

interface Column {
  title: string;
  wide?: boolean;
  value: (object: KubeObject, now: number) => Cell | string;
}

/** Column over objects of one kind. The key of the table guarantees that kind. */
function column<T extends KubeObject>(
  title: string,
  value: (object: T, now: number) => Cell | string | undefined,
  wide = false,
): Column {
  const plain = (found: Cell | string | undefined) => (typeof found === 'object' ? found : textCell(found));
  return { title, wide, value: (object, now) => plain(value(object as T, now)) };
}

const NAME = column('NAME', (object) => object.metadata.name);
const READY = column('READY', (object) => {
  const ready = readyCell(readinessText(object));
  return isShownAsleep(object) ? { ...ready, tone: 'busy' } : ready;
});
const STATUS = column('STATUS', (object) => summaryText(object));
const AGE = column('AGE', (object, now) => ageOf(object.metadata.creationTimestamp, now));
const MESSAGE = column('MESSAGE', (object) => (isReady(object) ? '' : activityText(object)), true);

const ratio = (ready: number | undefined, desired: number | undefined): string | undefined =>
  desired === undefined ? undefined : `${ready ?? 0}/${desired}`;

/** Column with used and allowed amount of one metric; empty if the metric is not limited. */
function limit(title: string, metric: Metric): Column {
  return column<Quota>(title, ({ spec, status }) => {
    const allowed = spec.metrics[metric];
    if (allowed === undefined) return undefined;
    return { text: `${textCell(status?.used?.[metric] ?? '?')}/${textCell(String(allowed))}` };
  });
}

/** The first problem of the object. */
const shownProblem = (object: KubeObject): string =>
  textCell(statusOf(object).conditions?.find((condition) => condition.status === 'False')?.message);

const GENERIC: Column[] = [NAME, READY, STATUS, AGE];

const TABLES: Record<string, Column[]> = {
  WorkerCluster: [
    NAME,
    column<WorkerCluster>('PROVIDER', (cluster) =>
      isSimulated(cluster)
        ? {
            text: `${textCell(cluster.spec.cloudProvider)} (SIMULATED${showsNoControlPlane(cluster) ? ', NO CONTROL PLANE' : ''})`,
            tone: 'loud',
          }
        : cluster.spec.cloudProvider,
    ),
    column<WorkerCluster>('MODE', ({ spec, status }) => status?.mode ?? spec.mode),
    column<WorkerCluster>('VERSION', ({ spec, status }) => status?.kubernetesVersion ?? spec.kubernetes?.version),
    column<WorkerCluster>('CONTROL-PLANE', ({ spec, status }) =>
      ratio(status?.controlPlane?.ready, status?.controlPlane?.desired ?? spec.controlPlaneNodes),
    ),
    column<WorkerCluster>('NODES', ({ spec, status }) =>
      ratio(status?.nodes?.ready, status?.nodes?.asked ?? status?.nodes?.desired ?? spec.dataPlaneNodes),
    ),
    READY,
    STATUS,
    AGE,
    column<WorkerCluster>('REGION', ({ spec, status }) => status?.region ?? spec.region, true),
    column<WorkerCluster>('ENDPOINT', ({ status }) => status?.endpoint, true),
    column<WorkerCluster>('CPU', ({ status }) => status?.resource?.total?.cpu, true),
    column<WorkerCluster>('MEMORY', ({ status }) => status?.resource?.total?.memory, true),
    column<WorkerCluster>('COST/H', ({ status }) => hourlyText(status?.cost), true),
    column<WorkerCluster>('ACCRUED', ({ status }, now) => accruedText(status?.cost, now), true),
    MESSAGE,
  ],
  Shoot: [
    NAME,
    column<Shoot>('PROFILE', ({ spec }) => spec.cloudProfile?.name ?? spec.cloudProfileName),
    column<Shoot>('SEED', ({ spec, status }) => status?.seedName ?? spec.seedName),
    column<Shoot>('VERSION', ({ spec }) => spec.kubernetes?.version),
    column<Shoot>('CONTROL-PLANE', ({ status }) => ratio(status?.controlPlane?.ready, status?.controlPlane?.desired)),
    column<Shoot>('NODES', ({ status }) => ratio(status?.nodes?.ready, status?.nodes?.desired)),
    READY,
    STATUS,
    AGE,
    column<Shoot>('REGION', ({ spec }) => spec.region, true),
    column<Shoot>('NAMESPACE-IN-SEED', ({ status }) => status?.technicalID, true),
    MESSAGE,
  ],
  Seed: [
    NAME,
    column<Seed>('PROVIDER', ({ spec }) => spec.provider?.type),
    column<Seed>('REGION', ({ spec }) => spec.provider?.region),
    column<Seed>('VERSION', ({ status }) => status?.kubernetesVersion),
    READY,
    STATUS,
    AGE,
    MESSAGE,
  ],
  CredentialsBinding: [
    NAME,
    column<CredentialsBinding>('PROVIDER', ({ provider }) => provider?.type),
    column<CredentialsBinding>('SECRET', ({ credentialsRef }) => credentialsRef?.name),
    column<CredentialsBinding>('ACCOUNT', ({ status }) => status?.account),
    READY,
    AGE,
    MESSAGE,
  ],
  CloudProfile: [
    NAME,
    column<CloudProfile>('TYPE', ({ spec }) => spec.type),
    column<CloudProfile>('PROVIDER', ({ spec, ...profile }) =>
      isSimulated(profile as KubeObject) || (spec.provider === 'simulated' && spec.type !== 'simulated')
        ? { text: 'SIMULATED', tone: 'loud' }
        : (spec.provider ?? spec.type),
    ),
    column<CloudProfile>('VERSIONS', ({ spec }) => String(spec.kubernetes?.versions?.length ?? 0)),
    column<CloudProfile>('MACHINE-TYPES', ({ spec }) => String(spec.machineTypes?.length ?? 0)),
    READY,
    AGE,
    column<CloudProfile>('REGIONS', ({ spec }) => spec.regions?.map((region) => region.name).join(','), true),
    MESSAGE,
  ],
  Quota: [
    NAME,
    limit('CLUSTERS', 'clusters'),
    limit('NODES', 'nodes'),
    limit('CPU', 'cpu'),
    limit('MEMORY', 'memory'),
    limit('GPU', 'gpu'),
    limit('COST/H', 'cost.hourly'),
    limit('COST/MONTH', 'cost.monthly'),
    READY,
    AGE,
    column<Quota>('CURRENCY', ({ spec }) => spec.currency, true),
    column<Quota>('MESSAGE', (quota) => shownProblem(quota), true),
  ],
};
