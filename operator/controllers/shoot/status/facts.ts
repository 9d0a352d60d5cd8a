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

/** What is known of every shoot, whatever stands behind it. */
export interface CommonFacts {
  readonly shoot: Shoot;
  readonly technicalID: string;
  readonly seedName: string | undefined;
  readonly version: string | undefined;
  /** Ranges in use. */
  readonly networks?: { readonly pods: string; readonly services: string };
  readonly endpoint: string | undefined;
  /** URLs by names that lead to the endpoint, by whose domain they are in. */
  readonly named?: readonly { name: string; url: string }[];
  readonly pools: readonly Pool[];
  readonly madeOf?: MadeOf;
  readonly operation: LastOperation | undefined;
  readonly errors: readonly LastError[];
  /** Which of its keys were lost, and what to do; absent: none were. */
  readonly keysLost?: string | undefined;
  readonly observedGeneration: number | undefined;
}

/** What is seen of a shoot whose control plane runs somewhere. */
export interface RunningFacts extends CommonFacts {
  /** Whether the admin's kubeconfig was seen to work and the API server is still in touch; undefined: nobody has asked it yet. */
  readonly usable: { ok: boolean; message: string } | undefined;
  /** Absent while there is no connection to the API server: then nothing is known about nodes. */
  readonly inside: { nodes: readonly Node[]; pods: readonly Pod[]; machines: readonly Machine[] } | undefined;
  /** Whether API servers reach the cluster through a tunnel; absent: directly. */
  readonly tunnel?: boolean | undefined;
  /** Whether nothing of the cluster can be reached, since its nodes run no pods; absent: no. */
  readonly nothingRuns?: boolean | undefined;
  /** What of the system components an admission policy of the cluster refused; absent: nothing. */
  readonly systemRefused?: string | undefined;
  /** What the API server says of webhooks that are in the way of a part; absent: nothing. */
  readonly blocked?: ReadonlyMap<BlockedPart, string>;
  /** What was done and seen of metrics-server; absent: nothing. */
  readonly metricsServer?: MetricsServerState;
  /** Pods in the seed that cannot start. */
  readonly problems?: readonly PodProblem[];
  /** One line for each drain that goes on. */
  readonly draining: readonly string[];
  /** One line for each machine whose node is unwell, with what is done about it. */
  readonly repairing?: readonly string[];
  /** How far it is with machines of the control plane that are made anew; absent: none is. */
  readonly replacing?: string | undefined;
  /** What became of the names of the API server. */
  readonly records?: readonly DNSOutcome[];
  /** Condition Drifted; absent: nobody has looked yet, or there is nothing to be looked at. */
  readonly drift?: Said<'Shoot'> | undefined;
  /** Condition of another key for Secrets; absent: none comes in. */
  readonly encryption?: Said<'Shoot'> | undefined;
  /** Condition of its backups; absent: it has none. */
  readonly backup?: Said<'Shoot'> | undefined;
}

/** What an operation knows of its shoot; `shoot` as it is now. */
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

/** A status is looked at some twenty times until a cluster is Ready: it asks no API server of what caches have. */
async function insideFacts(
  op: Operation,
  connection: Pick<ClusterConnection, 'nodes' | 'pods'>,
  podsInSeed: readonly Pod[],
): Promise<NonNullable<RunningFacts['inside']>> {
  const nodes = connection.nodes.list();
  const machines = await op.provider.listMachines({ ...op.context(), seen: { pods: podsInSeed, nodes } });
  return { nodes, pods: connection.pods.list(), machines };
}

/** What an operation knows of a shoot whose control plane runs somewhere; `shoot` as it is now. */
export async function runningFacts(op: Operation, shoot: Shoot): Promise<RunningFacts> {
  const { state, values } = op;
  const { connection } = state;
  // A machine that never started is no news to who deletes its cluster.
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
