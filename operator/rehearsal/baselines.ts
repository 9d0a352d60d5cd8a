import type { BurstCandidate } from '../api/burstpolicy.ts';
import { MAX_NODES } from '../api/worker-pool.ts';
import { profileNameOf } from '../api/workercluster.ts';
import { manifestOf } from '../controllers/burst/own-clusters.ts';
import { modeOf } from './members.ts';
import type { Scenario } from './scenario.ts';

/** Name of the cluster that only grows by nodes. */
const NAME = 'autoscaled';

/**
 * The scenario without its policy: one cluster of the candidate exists from the beginning, and its pools are autoscaled
 * for all workloads that fit nowhere else. undefined: the template's pools cannot be autoscaled.
 */
export function nodesAlone(scenario: Scenario, candidateName: string): Scenario | undefined {
  const { policy } = scenario;
  const candidate = policy?.spec.candidates.find(({ name }) => name === candidateName);
  if (!policy || !candidate?.template.spec.pools) return undefined;
  const profile = scenario.profiles.get(profileNameOf(candidate.template));
  const isManaged = modeOf(candidate.template, profile) === 'Managed';
  const { spec } = autoscaled(candidate, policy.spec.maximumClusters, isManaged);
  const made = manifestOf(
    policy,
    { name: candidateName, template: { ...candidate.template, spec } },
    { name: NAME, number: 0, nodes: {} },
  );
  const key = `${made.metadata.namespace}/${NAME}`;
  return { ...scenario, policy: undefined, overflow: key, clusters: new Map([...scenario.clusters, [key, made]]) };
}

type Waiting = Pick<BurstCandidate, 'warmClusters' | 'sleepingClusters'>;

const countsOf = ({ warmClusters = 0, sleepingClusters = 0 }: Waiting) => [warmClusters, sleepingClusters] as const;

/** Alternative ways of waiting for the same number of clusters. */
const WAYS: readonly { readonly what: string; readonly have: (count: number) => Waiting; readonly wakes: boolean }[] = [
  { what: 'if all wait warm', have: (count) => ({ warmClusters: count }), wakes: true },
  { what: 'if all wait asleep', have: (count) => ({ sleepingClusters: count }), wakes: true },
  { what: 'if none waits', have: () => ({}), wakes: false },
];

/** The policy with other ways of waiting. Empty: it has no waiting clusters. */
export function otherWaits(scenario: Scenario): { readonly what: string; readonly scenario: Scenario }[] {
  const { policy } = scenario;
  if (!policy) return [];
  const { candidates: own, wake = [] } = policy.spec;
  const said = (candidates: readonly Waiting[]) => JSON.stringify(candidates.map(countsOf));
  return WAYS.flatMap(({ what, have, wakes }) => {
    const candidates = own.map((candidate): BurstCandidate => {
      const { warmClusters: _, sleepingClusters: __, ...others } = candidate;
      const [warm, asleep] = countsOf(candidate);
      return { ...others, ...have(warm + asleep) };
    });
    if (said(candidates) === said(own) && (wakes || wake.length === 0)) return [];
    const spec = { ...policy.spec, candidates, ...(!wakes && { wake: undefined }) };
    return [{ what, scenario: { ...scenario, policy: { ...policy, spec } } }];
  });
}

/** A cluster that may grow to the size of all the policy's clusters, and shrink to zero nodes. */
function autoscaled(
  { template, maximumClusters }: BurstCandidate,
  most: number,
  isManaged: boolean,
): BurstCandidate['template'] {
  const times = maximumClusters ?? most;
  const { dataPlaneNodes: _, ...spec } = template.spec;
  const pools = spec.pools!.map((pool) => ({
    ...pool,
    minimum: 0,
    maximum: Math.min(MAX_NODES, (pool.maximum ?? MAX_NODES) * times),
    // A managed cluster has the cloud's autoscaler, which also removes nodes: the same planner stands in for it.
    autoscale: isManaged ? ('Cloud' as const) : ('Coppice' as const),
  }));
  return { ...template, spec: { ...spec, pools } };
}
