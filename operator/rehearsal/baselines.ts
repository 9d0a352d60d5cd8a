import type { BurstCandidate } from '../api/burstpolicy.ts';
import { MAX_NODES } from '../api/worker-pool.ts';
import { profileNameOf } from '../api/workercluster.ts';
import { manifestOf } from '../controllers/burst/own-clusters.ts';
import { modeOf } from './members.ts';
import type { Scenario } from './scenario.ts';

/** Name of the cluster that grows by nodes alone. */
const NAME = 'autoscaled';

/**
 * The same scenario without its policy: one cluster of that candidate stands from the beginning, and its pools grow and shrink for all that has
 * no place elsewhere. undefined: its template has no pools that could.
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

/** How as many clusters as a candidate has wait could do so. */
const WAYS: readonly { readonly what: string; readonly have: (count: number) => Waiting; readonly wakes: boolean }[] = [
  { what: 'if all wait warm', have: (count) => ({ warmClusters: count }), wakes: true },
  { what: 'if all wait asleep', have: (count) => ({ sleepingClusters: count }), wakes: true },
  { what: 'if none waits', have: () => ({}), wakes: false },
];

/** The same policy with its clusters waiting in other ways. Empty: it has none wait. */
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

/** As large as all clusters that a policy may have of it, and as small as nothing. */
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
    // Of a managed cluster the cloud's own, which takes nodes away as well: it is played by the same planner.
    autoscale: isManaged ? ('Cloud' as const) : ('Coppice' as const),
  }));
  return { ...template, spec: { ...spec, pools } };
}
