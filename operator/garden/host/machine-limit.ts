import { availableParallelism, totalmem } from 'node:os';

/**
 * An idle machine (kubelet, containerd, kube-proxy) uses a fiftieth of a core. A quarter of each core is reserved for
 * machines.
 */
const MACHINES_PER_CORE = 20;
/** A machine without pods uses 125 MB (docs/seen/benchmarks.md); the same again is for its pods. */
const BYTES_PER_MACHINE = 256 * 2 ** 20;
/** The rest is for the garden, control planes and other programs. */
const SHARE_OF_MEMORY = 0.75;

/** Resources of a computer that are shared by machines of provider local. */
interface Computer {
  readonly cores: number;
  /** In bytes. */
  readonly memory: number;
}

/** This computer, or the share that its container or service has. */
export function thisComputer(): Computer {
  const constrained = process.constrainedMemory();
  return {
    cores: availableParallelism(),
    memory: constrained > 0 ? Math.min(constrained, totalmem()) : totalmem(),
  };
}

/** Machines of provider local per cluster on a computer; at least 1. Pure. */
export const mostMachines = ({ cores, memory }: Computer): number =>
  Math.max(1, Math.floor(Math.min(cores * MACHINES_PER_CORE, (memory * SHARE_OF_MEMORY) / BYTES_PER_MACHINE)));
