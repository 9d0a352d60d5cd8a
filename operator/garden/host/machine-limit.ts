import { availableParallelism, totalmem } from 'node:os';

/** A kubelet, containerd and kube-proxy that have nothing to do take a fiftieth of a core. A quarter of each core is left for them. */
const MACHINES_PER_CORE = 20;
/** A machine without pods has 125 MB (docs/seen/benchmarks.md); as much again is for what runs on it. */
const BYTES_PER_MACHINE = 256 * 2 ** 20;
/** The rest is for the garden, control planes and whatever else runs on the computer. */
const SHARE_OF_MEMORY = 0.75;

/** What a computer has, of which machines of provider local take their share. */
interface Computer {
  readonly cores: number;
  /** In bytes. */
  readonly memory: number;
}

/** This computer, or what its container or service is given of it. */
export function thisComputer(): Computer {
  const constrained = process.constrainedMemory();
  return {
    cores: availableParallelism(),
    memory: constrained > 0 ? Math.min(constrained, totalmem()) : totalmem(),
  };
}

/** How many machines of provider local one cluster may have on a computer; at least 1. Pure. */
export const mostMachines = ({ cores, memory }: Computer): number =>
  Math.max(1, Math.floor(Math.min(cores * MACHINES_PER_CORE, (memory * SHARE_OF_MEMORY) / BYTES_PER_MACHINE)));
