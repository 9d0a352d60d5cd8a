import { CoppiceError, configurationProblem } from '../../operator/api/errors.ts';
import { writeKubeconfigText } from '../../operator/pki/kubeconfig.ts';
import type {
  Change,
  CloudContext,
  CloudNode,
  CloudPool,
  ManagedClusterOutputs,
  ManagedClusters,
  Owner,
  TaggedResource,
  WantedCluster,
} from '../../providers/cloud.ts';

export interface Made {
  id: string;
  type: string;
  account: string;
  region: string;
  owner: Owner;
  /** What was asked for, as JSON. */
  spec: string;
  /** The same by the last apply, which is all that the state of a stack knows. */
  applied?: string;
  createdAt: string;
  /** Of a pool: the machines that it has, by numbers that are never given again. */
  machines?: number[];
}

/** An operation that waits at a step until it is told to go on. */
export interface Pause {
  /** Resolves when an operation has got there. */
  reached: Promise<void>;
  resume(): void;
}

/**
 * A cloud in memory: what is made in it outlives those who make it. It can be slow (pause), fail (fail), throttle or run
 * short, lose its trust in credentials, be changed by others (tamper), and be left by a dead operator with its lock held.
 */
export class MemoryCloud {
  /** Access keys that it knows, and whose they are. */
  readonly accounts = new Map([['key-1', 'account-1']]);
  /** Permissions that the credentials lack. */
  missing: string[] = [];
  /** Machines that are sold out; what is absent matches all. */
  depleted: { profile?: string; machineType?: string; zone?: string }[] = [];
  /** Most nodes of an account. */
  quota = Number.POSITIVE_INFINITY;
  /** By account, owner and name: a second create of the same thing is a test that failed. */
  readonly made = new Map<string, Made>();
  readonly calls: string[] = [];
  /** API servers that tokens of the account were made for. */
  readonly tokensFor: string[] = [];
  /** Whether it takes over clusters. */
  adopts = false;
  /** Why it ends no named nodes. */
  refusal: CoppiceError | undefined;
  /** What it was last told to take away. */
  lastDestroyed: WantedCluster | undefined;
  /** Where kubeconfigs lead to, and how long their tokens live. */
  endpoint = 'https://cloud.invalid:443';
  tokenMs = 15 * 60_000;
  token = 'cloud-token';
  certificateAuthority = '-----BEGIN CERTIFICATE-----';
  readonly #pauses = new Map<string, { reached: () => void; gate: Promise<void> }>();
  readonly #faults = new Map<string, { error: () => Error; left: number }>();
  readonly #locks = new Map<string, string>();
  readonly #dead = new Set<string>();
  #serial = 0;

  /** The next operation that gets to this step stays there. */
  pause(step: string): Pause {
    const reached = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    this.#pauses.set(step, { reached: reached.resolve, gate: gate.promise });
    return { reached: reached.promise, resume: gate.resolve };
  }

  /** This step fails, so many times. */
  fail(step: string, error: Error | (() => Error), times = 1): void {
    this.#faults.set(step, { error: typeof error === 'function' ? error : () => error, left: times });
  }

  /** The operator of this name was killed: what it was in the middle of stays as it is, its locks too. */
  kill(operator: string): void {
    this.#dead.add(operator);
  }

  /** Somebody changes things by hand. */
  tamper(type: string): void {
    for (const resource of this.made.values()) if (resource.type === type) resource.spec = '"changed by hand"';
  }

  /** Opens what an earlier run has left, which may have noted less of it: its stacks know what they have made. */
  open(made: Record<string, Made>): void {
    for (const [key, one] of Object.entries(made)) {
      const opened = { ...one, applied: one.applied ?? one.spec };
      if (one.type.startsWith('pool ')) this.nodes(opened);
      this.made.set(key, opened);
    }
  }

  names(account = 'account-1'): string[] {
    return [...this.made.keys()]
      .filter((key) => key.startsWith(`${account}/`))
      .map((key) => key.split('/').slice(2).join('/'));
  }

  /** The cloud's managed service as the operator of this name calls it. */
  managed(operator = 'one', version = '1'): ManagedClusters {
    return {
      version,
      adopts: this.adopts,
      validate: (cluster) =>
        cluster.pools.length > 20
          ? [{ field: 'pools', message: 'this cloud has at most 20 node groups', code: 'ERR_CONFIGURATION_PROBLEM' }]
          : [],
      checkAccount: async (ctx) => {
        this.calls.push('checkAccount');
        await this.#step('checkAccount', operator, ctx);
        return { id: this.#account(ctx), missing: this.missing };
      },
      preview: async (ctx, cluster) => {
        this.calls.push('preview');
        return this.#differences(ctx, cluster, 'asked');
      },
      apply: (ctx, cluster) => this.#locked('apply', operator, ctx, () => this.#apply(operator, ctx, cluster)),
      drift: (ctx, cluster) =>
        this.#locked('drift', operator, ctx, async () => {
          await this.#step('drift', operator, ctx);
          return this.#differences(ctx, cluster, 'made');
        }),
      destroy: (ctx, cluster) => {
        this.lastDestroyed = cluster;
        return this.#locked('destroy', operator, ctx, () => this.#destroy(operator, ctx));
      },
      kubeconfig: async (ctx, outputs) => {
        this.calls.push('kubeconfig');
        await this.#step('kubeconfig', operator, ctx);
        this.tokensFor.push(outputs.endpoint);
        return {
          kubeconfig: writeKubeconfigText({
            server: outputs.endpoint,
            ca: outputs.certificateAuthority,
            token: this.token,
            name: 'cluster',
            user: 'cloud',
          }),
          expiresAt: new Date(+ctx.now() + this.tokenMs).toISOString(),
        };
      },
      removeNodes: (ctx, _outputs, pool, nodes) =>
        this.#locked('removeNodes', operator, ctx, async () => {
          await this.#step('removeNodes', operator, ctx);
          const made = this.made.get(`${this.#prefix(ctx)}pool ${pool}`);
          if (!made || made.owner.uid !== ctx.owner.uid) return { size: 0 };
          const there = this.nodes(made);
          if (this.refusal) return { size: there.length, refused: this.refusal };
          const isNamed = (one: CloudNode) => nodes.some(({ providerID }) => providerID === one.providerID);
          made.machines = made.machines!.filter((_, index) => !isNamed(there[index]!));
          made.spec = JSON.stringify({ ...(JSON.parse(made.spec) as CloudPool), desired: made.machines.length });
          await this.#step('nodes removed', operator, ctx);
          return { size: made.machines.length };
        }),
      tagged: async (ctx) => {
        this.calls.push('tagged');
        const account = this.#account(ctx);
        return [...this.made.values()]
          .filter((resource) => resource.account === account && resource.region === ctx.region)
          .map(({ id, type, region, owner, createdAt }): TaggedResource => ({ id, type, region, owner, createdAt }));
      },
    };
  }

  /**
   * The nodes of a pool, as they are registered, oldest first: the cloud has made those that are missing, and taken the oldest that are too
   * many.
   */
  nodes(made: Made): CloudNode[] {
    const { name, desired = 0 } = JSON.parse(made.spec) as CloudPool;
    const machines = (made.machines ?? []).slice(-desired || Number.POSITIVE_INFINITY);
    while (machines.length < desired) machines.push(++this.#serial);
    made.machines = machines;
    return machines.map((serial) => ({ name: `${name}-${serial}`, providerID: `memory:///${made.id}/${serial}` }));
  }

  #parts(cluster: WantedCluster): [type: string, spec: string][] {
    const { pools, ...rest } = cluster;
    return [
      ['network', JSON.stringify(cluster.cidrs)],
      ['cluster', JSON.stringify(rest)],
      ...pools.map((pool): [string, string] => [`pool ${pool.name}`, JSON.stringify(pool)]),
    ];
  }

  #differences(ctx: CloudContext, cluster: WantedCluster, from: 'asked' | 'made'): Change[] {
    const wanted = new Map(this.#parts(cluster));
    const prefix = this.#prefix(ctx);
    const changes: Change[] = [...wanted].flatMap(([type, spec]) => {
      const there = this.made.get(`${prefix}${type}`);
      if (!there) return [{ operation: 'create', resource: `memory:${type}` }];
      const tampered = there.spec === '"changed by hand"';
      if (there.spec === spec || (from === 'asked' && tampered)) return [];
      return [{ operation: 'update', resource: `memory:${type}`, properties: ['spec'] }];
    });
    for (const key of this.made.keys()) {
      const type = key.slice(prefix.length);
      if (key.startsWith(prefix) && !wanted.has(type))
        changes.push({ operation: 'delete', resource: `memory:${type}` });
    }
    return changes;
  }

  async #apply(operator: string, ctx: CloudContext, cluster: WantedCluster): Promise<ManagedClusterOutputs> {
    const parts = this.#parts(cluster);
    const prefix = this.#prefix(ctx);
    for (const [done, [type, spec]] of parts.entries()) {
      ctx.onProgress?.({ description: `creating ${type}`, done, total: parts.length });
      await this.#step(type, operator, ctx);
      const there = this.made.get(`${prefix}${type}`);
      this.#supply(ctx, type, spec, there?.spec);
      if (there) {
        // Adopted by its tags; what others changed is only seen by who looks.
        const isNews = there.applied !== spec && there.spec !== '"changed by hand"';
        if (isNews || ctx.refresh) there.spec = spec;
        there.applied = spec;
        if (type.startsWith('pool ')) this.nodes(there);
        continue;
      }
      const nodes = cluster.pools.reduce((sum, pool) => sum + (pool.desired ?? pool.minimum), 0);
      if (type.startsWith('pool') && nodes > this.quota)
        throw new CoppiceError(
          'ERR_INFRA_QUOTA_EXCEEDED',
          `the account has a quota of ${this.quota} machines, not ${nodes}`,
        );
      this.made.set(`${prefix}${type}`, {
        id: `${type}-${++this.#serial}`,
        type,
        account: this.#account(ctx),
        region: ctx.region,
        owner: ctx.owner,
        spec,
        applied: spec,
        createdAt: ctx.now().toISOString(),
      });
    }
    for (const key of [...this.made.keys()]) {
      if (key.startsWith(prefix) && !parts.some(([type]) => key === `${prefix}${type}`)) this.made.delete(key);
    }
    return {
      name: ctx.owner.technicalID,
      endpoint: this.endpoint,
      certificateAuthority: this.certificateAuthority,
      version: cluster.kubernetesVersion,
    };
  }

  /** As clouds have it: a pool gets what there is in any of its zones, or is refused. */
  #supply(ctx: CloudContext, type: string, spec: string, before: string | undefined): void {
    if (!type.startsWith('pool ')) return;
    const { name, machineType, zones, desired = 0 } = JSON.parse(spec) as CloudPool;
    const had = before?.startsWith('{') ? ((JSON.parse(before) as CloudPool).desired ?? 0) : 0;
    const isGone = (zone: string) =>
      this.depleted.some(
        (row) =>
          (row.profile ?? ctx.profile.metadata.name) === ctx.profile.metadata.name &&
          (row.machineType ?? machineType) === machineType &&
          (row.zone ?? zone) === zone,
      );
    const places = zones.length > 0 ? zones : ['anywhere'];
    if (desired <= had || !places.every(isGone)) return;
    const message = `no ${machineType} left in ${places.join(', ')}`;
    throw new CoppiceError('ERR_INFRA_RESOURCES_DEPLETED', message, { shortages: [{ pool: name }] });
  }

  async #destroy(operator: string, ctx: CloudContext): Promise<void> {
    const keys = [...this.made.keys()].filter((key) => key.startsWith(this.#prefix(ctx))).reverse();
    for (const key of keys) {
      const type = this.made.get(key)?.type ?? '';
      ctx.onProgress?.({ description: `deleting ${type}`, done: 0 });
      await this.#step(`delete ${type}`, operator, ctx);
      this.made.delete(key);
    }
  }

  /** One at a time on a stack, as the runner's lock has it; what a dead operator holds is recognised. */
  async #locked<T>(name: string, operator: string, ctx: CloudContext, run: () => Promise<T>): Promise<T> {
    this.calls.push(name);
    const stack = ctx.owner.technicalID;
    const holder = this.#locks.get(stack);
    if (holder !== undefined && holder !== operator && !this.#dead.has(holder))
      throw new CoppiceError('ERR_RETRYABLE_INFRA_DEPENDENCIES', `the stack ${stack} is locked by ${holder}`);
    this.#locks.set(stack, operator);
    try {
      return await run();
    } finally {
      if (!this.#dead.has(operator)) this.#locks.delete(stack);
    }
  }

  async #step(step: string, operator: string, ctx: Pick<CloudContext, 'account' | 'signal'>): Promise<void> {
    const pause = this.#pauses.get(step);
    if (pause) {
      this.#pauses.delete(step);
      pause.reached();
      const aborted = new Promise<void>((resolve) =>
        ctx.signal.addEventListener('abort', () => resolve(), { once: true }),
      );
      await Promise.race([pause.gate, aborted]);
    }
    // Its process is no more: nothing of it goes on.
    if (this.#dead.has(operator)) await new Promise(() => {});
    ctx.signal.throwIfAborted();
    this.#account(ctx);
    const fault = this.#faults.get(step);
    if (!fault) return;
    if (--fault.left <= 0) this.#faults.delete(step);
    throw fault.error();
  }

  #account({ account }: Pick<CloudContext, 'account'>): string {
    const { accessKey } = account.credentials;
    if (accessKey === undefined) throw configurationProblem('the Secret has no key accessKey');
    const id = this.accounts.get(accessKey);
    if (id === undefined) throw new CoppiceError('ERR_INFRA_UNAUTHENTICATED', 'the cloud does not know the access key');
    return id;
  }

  #prefix(ctx: CloudContext): string {
    return `${this.#account(ctx)}/${ctx.owner.technicalID}/`;
  }
}
