import type { FitNode } from './model.ts';

/** Nominal size of a machine type. */
export interface NominalSize {
  millicores: number;
  bytes: number;
  gpus: number;
  /** Most pods on a node. */
  pods: number;
  /** Bytes of ephemeral storage for pods; undefined: unknown, and pods that request some do not fit. */
  storage?: number;
}

/**
 * Formula of kubelet's reserved resources. `none`: nothing reserved (local and simulated machines). `machines`:
 * Coppice's machines of hosted clusters in clouds. The others are managed node groups.
 */
export type Reserve = 'none' | 'machines' | 'eks' | 'gke' | 'aks';

const MIB = 2 ** 20;
const GIB = 2 ** 30;
/** kubelet evicts pods below this much free memory, so it is never allocatable. */
const EVICTION = 100 * MIB;
/** Usable share of nominal memory after firmware and kernel; the smallest seen on nodes of these clouds. */
const LEAST_SEEN = 0.925;

/** Brackets: [upper bound, reserved share of that part], in order; the result is the sum. */
type Brackets = readonly (readonly [upTo: number, share: number])[];

function byBrackets(amount: number, brackets: Brackets): number {
  let [kept, from] = [0, 0];
  for (const [upTo, share] of brackets) {
    kept += Math.max(0, Math.min(amount, upTo) - from) * share;
    from = upTo;
  }
  return Math.ceil(kept);
}

const CPU: Brackets = [
  [1000, 0.06],
  [2000, 0.01],
  [4000, 0.005],
  [Infinity, 0.0025],
];
const GKE_MEMORY: Brackets = [
  [4 * GIB, 0.25],
  [8 * GIB, 0.2],
  [16 * GIB, 0.1],
  [128 * GIB, 0.06],
  [Infinity, 0.02],
];
/** [cores, reserved millicores]: the last row that the machine reaches. */
const AKS_CPU = [
  [1, 60],
  [2, 100],
  [4, 140],
  [8, 180],
  [16, 260],
  [32, 420],
  [64, 740],
] as const;

const RULES: Record<Reserve, (sold: NominalSize) => { millicores: number; bytes: number }> = {
  none: ({ millicores, bytes }) => ({ millicores, bytes }),
  // As configured by providers/machines/user-data.ts.
  machines: ({ millicores, bytes }) => ({
    millicores: millicores - 100,
    bytes: bytes * LEAST_SEEN - 300 * MIB - EVICTION,
  }),
  eks: ({ millicores, bytes, pods }) => ({
    millicores: millicores - byBrackets(millicores, CPU),
    bytes: bytes * LEAST_SEEN - (255 + 11 * pods) * MIB - EVICTION,
  }),
  gke: ({ millicores, bytes }) => {
    const seen =
      bytes - bytes / 64 - 16 * MIB - (bytes > 3 * GIB ? 64 * MIB : 0) - Math.min(bytes * 0.00175, 248 * MIB);
    return {
      millicores: millicores - byBrackets(millicores, CPU),
      bytes: seen - (bytes <= GIB ? 255 * MIB : byBrackets(seen, GKE_MEMORY)) - EVICTION,
    };
  },
  // Kubernetes 1.29 and later.
  aks: ({ millicores, bytes, pods }) => ({
    millicores: millicores - (AKS_CPU.findLast(([cores]) => cores * 1000 <= millicores)?.[1] ?? AKS_CPU[0][1]),
    bytes: bytes * LEAST_SEEN - Math.min(20e6 * pods + 50e6, bytes * 0.25) - EVICTION,
  }),
};

const amount = (of: number): number => Math.max(0, Math.floor(of));

/**
 * Expected allocatable of a machine type, by the formula of its node images. An estimate that is too high buys nodes on
 * which the pod does not fit, repeatedly: prefer `allocatableOf()` of an existing node of the type.
 */
export function allocatableOfType(sold: NominalSize, reserve: Reserve): FitNode['allocatable'] {
  const left = RULES[reserve](sold);
  return {
    cpu: amount(left.millicores),
    memory: amount(left.bytes),
    storage: sold.storage ?? 0,
    others: new Map(sold.gpus > 0 ? [['nvidia.com/gpu', sold.gpus]] : []),
    pods: sold.pods,
  };
}

/** Formula of managed services by profile type, which equals the provider's name. */
export const MANAGED_RESERVES: Readonly<Record<string, Reserve>> = { aws: 'eks', gcp: 'gke', azure: 'aks' };
