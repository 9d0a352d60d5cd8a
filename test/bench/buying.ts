import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { CandidateView, ClustersView, Supply, WaitingWork } from '../../operator/burst/clusters/model.ts';
import { planClusters } from '../../operator/burst/clusters/plan.ts';
import type { NodeTemplate } from '../../operator/burst/fit/model.ts';
import { nodeOf } from '../../operator/burst/fit/node.ts';
import { fitPod } from '../../operator/burst/fit/pod.ts';

const CLUSTERS = 500;
const NODES_EACH = 20;
const PODS_EACH = 8;
const DEMANDS = 5000;
const NOW = Date.parse('2026-11-21T12:00:00Z');
const MINUTE = 60_000;
const GIB = 2 ** 30;

const podOf = (millicores: number, app: string, { ports = {}, ...more }: { ports?: object; affinity?: object } = {}) =>
  fitPod({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'replica', namespace: 'shop', labels: { app } },
    spec: {
      containers: [{ name: 'work', resources: { requests: { cpu: `${millicores}m`, memory: '1Gi' } }, ...ports }],
      ...more,
    },
  });

const template = (cores: number): NodeTemplate => ({
  id: `of-${cores}`,
  labels: {},
  taints: [],
  allocatable: { cpu: cores * 1000, memory: cores * 4 * GIB, storage: 0, others: new Map(), pods: 110 },
  attachLimits: new Map(),
});

/** Clusters of which each node has room for half a CPU less than the smallest replica asks for. */
function fleet(): Supply[] {
  const of = template(4);
  const pods = Array.from({ length: PODS_EACH }, (_, index) => podOf(450, `runs-${index}`));
  return Array.from({ length: CLUSTERS }, (_, index) => {
    const name = `cluster-${String(index).padStart(3, '0')}`;
    const nodes = Array.from({ length: NODES_EACH }, (_, node) => ({ node: nodeOf(of, `node-${node}`), pods }));
    return {
      cluster: `shop/${name}`,
      member: { name, labels: { tier: index % 2 === 0 ? 'private' : 'public' }, zones: [] },
      nodes,
      planned: [],
    };
  });
}

const candidates = (): CandidateView[] =>
  [2, 4, 8, 16, 32, 48, 64, 96].map((cores) => {
    const price = BigInt(cores * 48_000 + 100);
    return {
      name: `of-${cores}`,
      priority: 0,
      left: 100,
      problem: undefined,
      offer: {
        member: { name: 'new', labels: { tier: 'public' }, zones: [] },
        pools: [{ name: 'pool', template: template(cores), minimum: 0, most: 1000, price }],
        price: (nodes) => {
          const hourly = 100_000n + price * BigInt(nodes.get('pool') ?? 0);
          return { hourly, most: hourly };
        },
      },
    };
  });

function view(sizes: number, more: Partial<ClustersView> = {}): ClustersView {
  const pods = Array.from({ length: sizes }, (_, index) => podOf(600 + index, `waits-${index}`));
  const waiting = Array.from(
    { length: DEMANDS },
    (_, index): WaitingWork => ({
      source: `shop/work-${index}`,
      count: 1,
      pod: pods[index % sizes]!,
      each: 'CPU',
      since: NOW - 10 * MINUTE - index,
    }),
  );
  return {
    limits: {
      pendingForMs: 30_000,
      maximumClusters: 100,
      hourly: 100_000_000_000n,
      monthly: undefined,
      currency: 'USD',
      idleForMs: 10 * MINUTE,
      minimumLifeMs: 30 * MINUTE,
      cooldownOutMs: MINUTE,
      cooldownInMs: 10 * MINUTE,
      isSuspended: false,
    },
    waiting,
    supply: fleet(),
    candidates: candidates(),
    clusters: [],
    spent: 0n,
    lastOut: undefined,
    lastIn: undefined,
    ...more,
  };
}

/** Jobs of which each goes to one cluster as a whole, whose pods keep away from each other and use ports of their nodes. */
function jobs(sizes: number): ClustersView {
  const pods = Array.from({ length: sizes }, (_, index) => {
    const app = `job-${index}`;
    const apart = { labelSelector: { matchLabels: { app } }, topologyKey: 'kubernetes.io/hostname' };
    return podOf(600 + index, app, {
      ports: { ports: [{ hostPort: 8000 + (index % 10) }] },
      affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [apart] } },
    });
  });
  const known = view(1);
  const waiting = known.waiting.map((one, index) => ({
    ...one,
    pod: pods[index % sizes]!,
    inOneCluster: true as const,
  }));
  return { ...known, waiting };
}

/** CPU time of a decision in milliseconds, and the most memory in mebibytes that its process had by then. */
export interface Measured {
  readonly milliseconds: number;
  readonly mebibytes: number;
}

function measured(of: ClustersView): Measured {
  const before = process.cpuUsage();
  planClusters(of, NOW);
  const { user, system } = process.cpuUsage(before);
  return { milliseconds: (user + system) / 1000, mebibytes: process.resourceUsage().maxRSS / 1024 };
}

const withBudget = (hourly: bigint): Partial<ClustersView> => ({ limits: { ...view(1).limits, hourly } });

/** What is decided once: nothing is warm. */
const CASES: Readonly<Record<string, () => ClustersView>> = {
  'which clusters to buy (planClusters): 5,000 demands of 100 sizes, 500 full clusters with 10,000 nodes': () =>
    view(100),
  'the same, where all ask for the same': () => view(1),
  'the same, of 5,000 sizes': () => view(DEMANDS),
  'the same, of 100 sizes, and the budget has room for a few': () => view(100, withBudget(20_000_000n)),
  'the same, of 100 sizes, and the budget has room for none': () => view(100, withBudget(1000n)),
  '5,000 jobs of 100 sizes, each for one cluster, with pods that keep apart and host ports, before the same fleet':
    () => jobs(100),
};

/** Each case in a process of its own: what ran before counts for none. */
export const measureBuying = (): Record<string, Measured> =>
  Object.fromEntries(
    Object.keys(CASES).map((title) => {
      const said = execFileSync(process.execPath, [fileURLToPath(import.meta.url), title], { encoding: 'utf8' });
      return [title, JSON.parse(said) as Measured];
    }),
  );

if (import.meta.main) process.stdout.write(JSON.stringify(measured(CASES[process.argv[2]!]!())));
