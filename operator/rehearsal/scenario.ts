import type { z } from 'zod';
import { simulationOf } from '../../providers/simulated/settings.ts';
import { type BurstPolicy, burstPolicySpec } from '../api/burstpolicy.ts';
import { type CloudProfile, cloudProfileSpec } from '../api/cloudprofile.ts';
import { configurationProblem } from '../api/errors.ts';
import { ALPHA_API_VERSION, API_VERSION } from '../api/group.ts';
import type { KubeObject } from '../api/meta.ts';
import { simulatedProfile } from '../api/profiles.ts';
import { type Quota, quotaSpec } from '../api/quota.ts';
import { type WorkerCluster, workerClusterSpec } from '../api/workercluster.ts';
import { profileNamesOf } from '../capacity/places.ts';
import { startupMs } from '../capacity/startup-times.ts';
import { keyOf } from '../kube/resources.ts';
import { demandProblem } from './admission.ts';

/** Input of a rehearsal. */
export interface Scenario {
  /** By namespace/name, as written, with defaults. */
  clusters: ReadonlyMap<string, WorkerCluster>;
  /** By name, bound to the simulated provider. */
  profiles: ReadonlyMap<string, CloudProfile>;
  quotas: readonly Quota[];
  /** Policy whose planner buys and removes clusters; undefined: none. */
  policy?: BurstPolicy | undefined;
  /**
   * namespace/name of a cluster that grows for everything the hub cannot place, as if nothing else could; undefined:
   * none.
   */
  overflow?: string | undefined;
  /** Objects and fields that a rehearsal ignores, for example "Seed local". */
  ignored: readonly string[];
}

/** An object with its file. */
interface Manifest {
  object: KubeObject;
  source: string;
}

const SCHEMAS: Readonly<Record<string, z.ZodType>> = {
  WorkerCluster: workerClusterSpec,
  CloudProfile: cloudProfileSpec,
  Quota: quotaSpec,
  BurstPolicy: burstPolicySpec,
};
const VERSIONS: Readonly<Record<string, string>> = { BurstPolicy: ALPHA_API_VERSION };

interface ScenarioOptions {
  /** Namespace of objects that name none. */
  namespace: string;
  /** Replaces the random seeds of all profiles. */
  seed?: number | undefined;
  /** By profile: replaces its spec.providerConfig.simulation. */
  simulations?: Readonly<Record<string, unknown>> | undefined;
}

/**
 * Builds a scenario from manifests, validated as by the API server. Profiles among them replace `shipped` ones of the
 * same name. Throws a configuration problem.
 */
export function scenarioOf(
  manifests: readonly Manifest[],
  shipped: readonly CloudProfile[],
  options: ScenarioOptions,
): Scenario {
  const clusters = new Map<string, WorkerCluster>();
  const profiles = new Map(shipped.map((profile) => [profile.metadata.name, profile]));
  const quotas: Quota[] = [];
  const ignored: string[] = [];
  let policy: BurstPolicy | undefined;
  const seen = new Set<string>();
  for (const { object, source } of manifests) {
    const { kind, metadata } = object;
    if (object.apiVersion !== (VERSIONS[kind] ?? API_VERSION) || !SCHEMAS[kind]) {
      ignored.push(`${kind} ${metadata.name}`);
      continue;
    }
    const namespaced =
      kind === 'CloudProfile' ? metadata : { ...metadata, namespace: metadata.namespace ?? options.namespace };
    const checked = { ...object, metadata: namespaced, spec: checkedSpec(object, source) };
    const key = keyOf(checked);
    if (seen.has(`${kind} ${key}`))
      throw configurationProblem(`${source}: there are two ${kind}s ${key}`, 'Remove one.');
    seen.add(`${kind} ${key}`);
    if (kind === 'CloudProfile') profiles.set(key, checked as unknown as CloudProfile);
    else if (kind === 'Quota') quotas.push(checked as unknown as Quota);
    else if (kind === 'BurstPolicy') {
      if (policy) throw configurationProblem(`${source}: there are two BurstPolicies`, 'Rehearse one after the other.');
      policy = checked as unknown as BurstPolicy;
      ignored.push(...notRehearsedOf(policy));
    } else clusters.set(key, admitted(checked as unknown as WorkerCluster, source));
  }
  if (clusters.size === 0 && !policy) {
    throw configurationProblem('the manifests have no WorkerCluster', 'Name those that the trace is about with -f.');
  }
  const unknown = Object.keys(options.simulations ?? {}).find((name) => !profiles.has(name));
  if (unknown !== undefined) {
    const known = [...profiles.keys()].join(', ');
    throw configurationProblem(`there is no CloudProfile "${unknown}" to simulate`, `There are ${known}.`);
  }
  const bound = new Map(
    [...profiles].map(([name, profile]) => [name, behaving(simulatedProfile(profile), options, policy !== undefined)]),
  );
  // Reported now rather than at the first machine.
  for (const name of new Set([...clusters.values()].flatMap(profileNamesOf))) {
    const profile = bound.get(name);
    if (profile) simulationOf(profile);
  }
  return { clusters, profiles: bound, quotas, policy, ignored };
}

/**
 * Fields of a policy without effect here: the simulated hub moves workloads at once, which readers of the figures must
 * know.
 */
const notRehearsedOf = ({ metadata, spec }: BurstPolicy): string[] => [
  ...(spec.scaleIn?.drainDeadline ? [`scaleIn.drainDeadline of BurstPolicy ${metadata.name}`] : []),
];

function checkedSpec({ kind, metadata, spec }: KubeObject, source: string): unknown {
  const where = `${source}: ${kind} ${metadata.name}`;
  const result = SCHEMAS[kind]!.safeParse(spec);
  if (!result.success) {
    const { path, message } = result.error.issues[0]!;
    throw configurationProblem(`${where}: ${['spec', ...path].join('.')}: ${message}`, 'Correct the manifest.');
  }
  const unknown = unknownField(spec, result.data, 'spec');
  if (unknown) throw configurationProblem(`${where}: ${unknown} is no field`, 'Look it up in docs/reference.');
  return result.data;
}

/** Finds a field that a schema silently drops. */
function unknownField(written: unknown, known: unknown, path: string): string | undefined {
  if (typeof written !== 'object' || written === null) return undefined;
  for (const [key, value] of Object.entries(written)) {
    const here = Array.isArray(written) ? `${path}[${key}]` : `${path}.${key}`;
    const counterpart = (known as Record<string, unknown>)[key];
    if (value !== undefined && counterpart === undefined) return here;
    const inner = unknownField(value, counterpart, here);
    if (inner) return inner;
  }
  return undefined;
}

function admitted(cluster: WorkerCluster, source: string): WorkerCluster {
  const problem = demandProblem(cluster.spec);
  if (problem)
    throw configurationProblem(`${source}: WorkerCluster ${cluster.metadata.name}: ${problem}`, 'Correct it.');
  return cluster;
}

/** @param usesStartup whether clusters and pools take the profile's startup times where no simulation is configured */
function behaving(profile: CloudProfile, { seed, simulations }: ScenarioOptions, usesStartup: boolean): CloudProfile {
  const { providerConfig } = profile.spec;
  const usual = usesStartup ? startupOf(profile) : undefined;
  const given = simulations?.[profile.metadata.name] ?? providerConfig?.simulation ?? usual;
  const simulation = seed === undefined ? given : { ...(given as object | undefined), seed };
  if (simulation === undefined) return profile;
  return { ...profile, spec: { ...profile.spec, providerConfig: { ...providerConfig, simulation } } };
}

/** A simulation with the profile's startup times: nodes of a new cluster take the cluster's time, others the pool's. */
function startupOf(profile: CloudProfile): object | undefined {
  const [cluster, pool] = [startupMs(profile, undefined, 'cluster'), startupMs(profile, undefined, 'pool')];
  if (cluster === undefined && pool === undefined) return undefined;
  const seconds = (ms: number) => `${Math.round(ms / 1000)}s`;
  const nodes = pool ?? 0;
  return {
    machines: { creation: { p50: seconds(nodes) } },
    controlPlane: { creation: { p50: seconds(Math.max(0, (cluster ?? nodes) - nodes)) } },
  };
}
