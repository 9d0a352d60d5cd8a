/** What a program gives back: plain values or Pulumi outputs of them. */
export type ProgramOutputs = Record<string, unknown>;

/**
 * An inline Pulumi program: declares resources from its inputs, and nothing else. It runs in a worker process, never in the
 * operator's. Equal inputs declare equal resources: no clock, no randomness, no network but the cloud's own look-ups.
 */
export type Program<Inputs> = (inputs: Inputs) => Promise<ProgramOutputs> | ProgramOutputs;

/**
 * Layers of a cluster: a stack each. `adopted` stands for `network` and `cluster` where both exist already; `endpoint` and
 * `control-plane` are of clusters whose control plane is on machines of their own.
 */
export type Layer = 'network' | 'cluster' | 'machines' | 'endpoint' | 'control-plane' | 'adopted';

/** Names a program: the runner's workers load `providers/<provider>/programs.ts`, whose export `programs` has it under the layer. */
export interface ProgramRef {
  provider: 'aws' | 'gcp' | 'azure';
  layer: Layer;
}

/** What a provider's `programs.ts` exports as `programs`. */
export type Programs = Partial<Record<Layer, Program<any>>>;
