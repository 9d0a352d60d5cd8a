import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { BucketSource } from '../../../operator/accounts/bucket-account.ts';
import { dependencyNotReady } from '../../../operator/api/errors.ts';
import type { Seed, SeedSpec } from '../../../operator/api/seed.ts';
import type { BackupBuckets, Provider } from '../../../providers/contract.ts';
import { buildCloudProfile, buildSeed } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';

/** Buckets in memory, of which is known what was asked. */
export class MemoryBuckets implements BackupBuckets {
  readonly inCloud = true;
  readonly objects = new Map<string, Buffer>();
  readonly asked: string[] = [];
  /** From now on every call is refused with this. */
  broken: Error | undefined;

  #ask(what: string): void {
    this.asked.push(what);
    if (this.broken) throw this.broken;
  }
  async ensure() {
    this.#ask('ensure');
  }
  /** What others have changed. */
  changed: string[] | Error = [];
  async differences() {
    this.#ask('differences');
    if (this.changed instanceof Error) throw this.changed;
    return this.changed;
  }
  async remove() {
    this.#ask('remove');
    this.objects.clear();
  }
  async put(_: unknown, key: string, content: { open(): Readable }) {
    this.#ask(`put ${key}`);
    this.objects.set(key, await buffer(content.open()));
  }
  async list(_: unknown, prefix: string) {
    this.#ask(`list ${prefix}`);
    return [...this.objects]
      .filter(([key]) => key.startsWith(prefix))
      .map(([key, { length: size }]) => ({ key, size }));
  }
  async get(_: unknown, key: string) {
    this.#ask(`get ${key}`);
    const found = this.objects.get(key);
    if (!found) throw dependencyNotReady(`no ${key}`);
    return Readable.from([found]);
  }
  async delete(_: unknown, key: string) {
    this.#ask(`delete ${key}`);
    this.objects.delete(key);
  }
}

export const NOW = Date.parse('2026-11-21T12:00:00Z');

/** What leads to these buckets, and a clock that a test moves. */
export function sourceOf(buckets: BackupBuckets): BucketSource & { time: number } {
  const profile = buildCloudProfile({ metadata: { name: 'aws' }, spec: { type: 'aws' } });
  const source = {
    time: NOW,
    gardenID: 'g-1',
    directory: undefined,
    profiles: () => [profile],
    provider: () => partOf<Provider>({ name: 'aws', backups: buckets }),
    binding: () => undefined,
    credentials: async (use: Parameters<BucketSource['credentials']>[0]) => ({
      use,
      values: { key: 'k' },
      version: '1',
    }),
    now: () => new Date(source.time),
  };
  return source;
}

export const seedWith = (
  backup: SeedSpec['backup'],
  conditions: NonNullable<Seed['status']>['conditions'] = [],
): Seed =>
  buildSeed({
    metadata: { name: 'blue', uid: 'seed-1', generation: 1 },
    spec: { provider: { type: 'aws', region: 'eu-central-1' }, backup },
    status: { conditions },
  });

export const BACKUP: NonNullable<SeedSpec['backup']> = {
  provider: 'aws',
  credentialsRef: { kind: 'Secret', name: 'account', namespace: 'garden' },
};
