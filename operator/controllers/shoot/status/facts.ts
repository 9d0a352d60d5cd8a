import type { Machine, Pool } from '../../../../providers/contract.ts';
import type { MadeOf } from '../../../api/acted.ts';
import type { LastError, LastOperation } from '../../../api/meta.ts';
import type { Shoot } from '../../../api/shoot.ts';
import type { ClusterConnection } from '../../../clusters/cluster-connection.ts';
import { keyOf, type Node, type Pod } from '../../../kube/resources.ts';
import { endpointURL, namedURL } from '../../../shoot/values.ts';
import type { Said } from '../../conditions.ts';
import type { DNSOutcome } from '../dns/dns-outcome.ts';
import { outcomesOf } from '../dns/dns-records.ts';
import { driftCondition } from '../drift/drift.ts';
import type { Operation } from '../operation.ts';
import { type PodProblem, podProblems } from '../pod-problems.ts';
import { type BlockedPart, type MetricsServerState, refusedOf } from '../state.ts';
import { encryptionCondition } from './encryption-condition.ts';
import { toldOperation } from './told-operation.ts';

/** Facts about any shoot. */
export interface CommonFacts {
  readonly shoot: Shoot;
  readonly technicalID: string;
  readonly seedName: string | undefined;
  readonly version: string | undefined;
  /** Address ranges in use. */
  readonly networks?: { readonly pods: string; readonly services: string };
  readonly endpoint: string | undefined;
  /** URLs by DNS name of the endpoint, with the domain's owner. */
  readonly named?: readonly { name: string; url: string }[];
  readonly pools: readonly Pool[];
  readonly madeOf?: MadeOf;
  readonly operation: LastOperation | undefined;
  readonly errors: readonly LastError[];
  /** Lost keys with advice; absent: none. */
  readonly keysLost?: string | undefined;
  readonly observedGeneration: number | undefined;
}

/** Facts about a shoot with a running control plane. */
export interface RunningFacts extends CommonFacts {
  /** Whether the admin's kubeconfig works and the API server answers; undefined: not probed yet. */
  readonly usable: { ok: boolean; message: string } | undefined;
  /** Absent without a connection to the API server: then nodes are unknown. */
  readonly inside: { nodes: readonly Node[]; pods: readonly Pod[]; machines: readonly Machine[] } | undefined;
  /** Whether API servers use a tunnel; absent: no. */
  readonly tunnel?: boolean | undefined;
  /** Whether the cluster's nodes run no pods (simulated); absent: no. */
  readonly nothingRuns?: boolean | undefined;
  /** System components that the cluster's admission policy refused; absent: none. */
  readonly systemRefused?: string | undefined;
  /** The API server's texts about webhooks that block a part; absent: none. */
  readonly blocked?: ReadonlyMap<BlockedPart, string>;
  /** State of metrics-server; absent: none. */
  readonly metricsServer?: MetricsServerState;
  /** Pods in the seed that cannot start. */
  readonly problems?: readonly PodProblem[];
  /** One line per drain. */
  readonly draining: readonly string[];
  /** One line per machine with an unhealthy node, with its repair. */
  readonly repairing?: readonly string[];
  /** Progress of replacing control plane machines; absent: none. */
  readonly replacing?: string | undefined;
  /** Results for DNS names of the API server. */
  readonly records?: readonly DNSOutcome[];
  /** Condition Drifted; absent: not checked yet, or not applicable. */
  readonly drift?: Said<'Shoot'> | undefined;
  /** Condition of a key rotation; absent: none. */
  readonly encryption?: Said<'Shoot'> | undefined;
  /** Condition of backups; absent: none. */
  readonly backup?: Said<'Shoot'> | undefined;
}

/** Facts of an operation about its shoot; `shoot`: the present object. */
export const commonFacts = (op: Operation, shoot: Shoot, endpoint: string | undefined): CommonFacts => ({
  shoot,
  technicalID: op.values.namespace,
  seedName: op.seed.name,
  version: op.values.version,
  networks: op.values.networks,
  endpoint,
  pools: op.pools,
  madeOf: { inCloud: op.provider.inCloud },
  operation: toldOperation(op.state.operation, op.state.timeLeft, op.deps.now()),
  errors: [...op.state.errors.values()],
  keysLost: op.state.keysLost,
  observedGeneration: op.state.settledGeneration ?? shoot.status?.observedGeneration,
});

/** From caches only: a status is computed some twenty times until a cluster is Ready. */
async function insideFacts(
  op: Operation,
  connection: Pick<ClusterConnection, 'nodes' | 'pods'>,
  podsInSeed: readonly Pod[],
): Promise<NonNullable<RunningFacts['inside']>> {
  const nodes = connection.nodes.list();
  const machines = await op.provider.listMachines({ ...op.context(), seen: { pods: podsInSeed, nodes } });
  return { nodes, pods: connection.pods.list(), machines };
}

/** Facts of an operation about a shoot with a running control plane; `shoot`: the present object. */
export async function runningFacts(op: Operation, shoot: Shoot): Promise<RunningFacts> {
  const { state, values } = op;
  const { connection } = state;
  // Machines that never started do not matter in a deletion.
  const isNews = ({ machine }: PodProblem) => !(machine && shoot.metadata.deletionTimestamp);
  const podsInSeed = op.seed.podsOf(keyOf(shoot));
  const problems = podProblems(podsInSeed).filter(isNews);
  const records = outcomesOf({ ...op, shoot });
  const named = records
    .filter(({ ready }) => ready)
    .map(({ domain, host }) => ({ name: domain, url: namedURL(host, values) }));
  return {
    ...commonFacts(op, shoot, values.addresses.apiServer ? endpointURL(values) : undefined),
    usable: state.usable,
    inside: connection?.health.answers ? await insideFacts(op, connection, podsInSeed) : undefined,
    operation: toldOperation(state.operation, state.timeLeft, op.deps.now(), problems),
    problems,
    ...(values.machinesOutside && { tunnel: true }),
    ...(values.clusterNetwork === 'none' && { nothingRuns: true }),
    systemRefused: refusedOf(state),
    blocked: state.blocked,
    metricsServer: state.metricsServer,
    draining: [...state.draining.values()],
    repairing: state.repairing,
    replacing: state.replacing,
    ...(records.length > 0 && { records, named }),
    drift: driftCondition(op, shoot),
    encryption: encryptionCondition(op, shoot),
    backup: op.deps.backups.condition(shoot),
  };
}
