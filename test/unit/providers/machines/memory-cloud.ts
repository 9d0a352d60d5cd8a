import { silent } from '../../../../operator/kube/log.ts';
import type { Change, CloudContext, MachinesInputs } from '../../../../providers/cloud.ts';
import type { CloudMachine, MachineCloud } from '../../../../providers/machines/machine-cloud.ts';
import type { StackRunner } from '../../../../providers/pulumi/stack-runner.ts';
import { profile } from '../fixtures.ts';

/** What is the same for all clouds in memory. */
export const LAYERS: MachineCloud['layers'] = {
  provider: 'aws',
  credentials: async () => ({}),
  settings: () => ({}),
  findExisting: () => async () => undefined,
  classify: () => undefined,
  poolOf: () => undefined,
  unmadeNetwork: () => ({ network: 'unmade', subnets: [] }),
};

/** The account of the tenant, as programs get it. */
export const tenantAccount = (now: () => Date): CloudContext =>
  ({
    owner: { technicalID: 'shoot--team--one', uid: 'u', name: 'one', namespace: 'team' },
    account: { id: 'x', credentials: {} },
    region: 'north',
    profile,
    log: silent,
    signal: new AbortController().signal,
    now,
  }) as unknown as CloudContext;

/**
 * A cloud in memory: groups are what runs of the layer `machines` said, and a run changes only what is other than what the last one
 * said, unless it looks first.
 */
export class MemoryCloud {
  now = Date.parse('2026-11-21T10:00:00Z');
  machines: CloudMachine[] = [];
  runs: string[] = [];
  inputs: MachinesInputs | undefined;
  failure: string | undefined;
  id = 'account-1';
  broken: Error | undefined;
  /** What is other in the cloud than the last runs made it, by layer. */
  drift: Record<string, Change[]> = {};
  /** So many machines there may be, whoever asks. */
  most = Number.POSITIVE_INFINITY;
  #serial = 0;
  readonly #said = new Map<string, number>();
  readonly #sizes = new Map<string, number>();

  readonly runner = {
    outputs: async ({ stack }: { stack: { layer: string } }) =>
      stack.layer === 'network' && this.runs.includes('apply network') ? { network: 'n', subnets: [] } : undefined,
    apply: async ({ stack, inputs, refresh }: { stack: { layer: string }; inputs: unknown; refresh?: boolean }) => {
      this.runs.push(`apply ${stack.layer}${refresh ? ' refreshed' : ''}`);
      if (this.broken) throw this.broken;
      if (stack.layer === 'network') return { outputs: { network: 'n', subnets: [] }, changes: [] };
      this.inputs = inputs as MachinesInputs;
      for (const { name, desired = 0 } of this.inputs.pools) {
        if (refresh || this.#said.get(name) !== desired) this.#sizes.set(name, desired);
        this.#said.set(name, desired);
      }
      this.fill();
      this.machines = this.machines.filter(({ pool: own }) => this.inputs!.pools.some(({ name }) => name === own));
      return { outputs: { groups: {} }, changes: [] };
    },
    drift: async ({ stack }: { stack: { layer: string } }) => {
      this.runs.push(`drift ${stack.layer}`);
      return this.drift[stack.layer] ?? [];
    },
    destroy: async ({ stack }: { stack: { layer: string } }) => {
      this.runs.push(`destroy ${stack.layer}`);
      if (stack.layer === 'machines') this.machines = [];
    },
  } as unknown as StackRunner;

  readonly cloud: MachineCloud = {
    layers: {
      ...LAYERS,
      classify: ({ text }) => (text.includes('Insufficient') ? 'ERR_INFRA_RESOURCES_DEPLETED' : undefined),
    },
    group: { type: 'aws:autoscaling/group:Group', size: 'desiredCapacity' },
    problems: () => [],
    image: async (_, architecture) => ({ image: `ubuntu-${architecture}-${this.now}` }),
    machines: async () => structuredClone(this.machines),
    remove: async (_ctx, own, going) => {
      this.runs.push(`remove ${own} ${going.map(({ name }) => name).join(' ')}`);
      this.machines = this.machines.filter(({ name }) => !going.some((one) => one.name === name));
      this.#sizes.set(own, (this.#sizes.get(own) ?? 0) - going.length);
    },
    failure: async () => this.failure,
  };

  /** Groups make what they miss. */
  fill(): void {
    for (const [name, size] of this.#sizes) {
      while (this.machines.length < this.most && this.machines.filter((one) => one.pool === name).length < size)
        this.start(name);
    }
  }

  start(own: string): void {
    const hash = this.inputs?.pools.find((pool) => pool.name === own)?.hash;
    const name = `i-${++this.#serial}`;
    const createdAt = new Date(this.now).toISOString();
    this.machines.push({
      name,
      pool: own,
      nodeName: name,
      phase: 'Running',
      createdAt,
      zone: 'north-a',
      ...(hash !== undefined && { hash }),
    });
  }
}
