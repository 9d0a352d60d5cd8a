/** Outputs of a program: plain values or Pulumi outputs. */
export type ProgramOutputs = Record<string, unknown>;

/**
 * An inline Pulumi program: declares resources from its inputs and nothing else. Runs in a worker process, never in the
 * operator's. Equal inputs declare equal resources: no clock, no randomness, no network except the cloud's look-ups.
 */
export type Program<Inputs> = (inputs: Inputs) => Promise<ProgramOutputs> | ProgramOutputs;

/**
 * Layers of a cluster, one stack each. `adopted` replaces `network` and `cluster` for existing ones; `endpoint` and
 * `control-plane` are for control planes on own machines.
 */
export type Layer = 'network' | 'cluster' | 'machines' | 'endpoint' | 'control-plane' | 'adopted';

/**
 * Reference to a program: workers load `providers/<provider>/programs.ts`, whose export `programs` contains it by
 * layer.
 */
export interface ProgramRef {
  provider: 'aws' | 'gcp' | 'azure';
  layer: Layer;
}

/** Type of export `programs` of a provider's `programs.ts`. */
export type Programs = Partial<Record<Layer, Program<any>>>;
