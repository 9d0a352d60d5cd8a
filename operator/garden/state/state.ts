import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { readJson, readText, writeAtomic } from '../host/files.ts';
import type { Ports } from '../host/ports.ts';
import type { Ranges } from '../host/ranges.ts';
import { coppiceHome } from '../toolchain/cache.ts';
import { openedByNewer, WAY_ON } from './known-fields.ts';

/**
 * The format of a garden's folder, with all that lies in etcd. It goes up when an older Coppice would lose or misread what this one has
 * written there: Coppice opens gardens of its own format and of those before it, and refuses others. Fields that people set have
 * a guard of their own (known-fields.ts). Before 2 a garden did not refuse an older Coppice that knew fewer fields; before 3 its Secrets,
 * and those of its hosted clusters, were not encrypted in etcd; before 4 those of clusters whose control plane is on machines were not.
 */
export const FORMAT = 4;
/** What wrote to disk in that format: an older minor version of either does not open it. Another one is another format. */
export const WRITERS_OF_FORMAT = { etcd: '3.7', kubernetes: '1.36' } as const;

/** What a garden remembers from one `up` to the next. */
export interface GardenState {
  id: string;
  createdAt: string;
  ports: Ports;
  ranges: Ranges;
  /** `local`: control planes run on this machine; `kubeconfig`: on another Kubernetes; `none`: there is no seed. */
  seed: 'local' | 'kubeconfig' | 'none';
  /** The local seed is made without root: it hosts control planes and no machines. */
  rootless?: true;
  /** The Hub `inventory` was made: whoever deletes it does not find it there again. Absent in gardens from before there was one. */
  inventory?: boolean;
}

/** Where everything of one garden lies. Every folder is private to the user. */
export class StateDirectory {
  readonly home: string;
  readonly root: string;
  /** Tells this garden's interfaces, namespaces and cgroups from those of others on the machine. */
  readonly id: string;

  constructor(home: string = coppiceHome()) {
    this.home = resolve(home);
    this.root = join(this.home, 'garden');
    this.id = createHash('sha256').update(this.root).digest('hex').slice(0, 6);
  }

  path(...parts: string[]): string {
    return join(this.root, ...parts);
  }

  get stateFile(): string {
    return this.path('garden.json');
  }
  /** The fields that people can set, as the last Coppice knew them that opened the garden. */
  get fieldsFile(): string {
    return this.path('fields.json');
  }
  get statusFile(): string {
    return this.path('run', 'status.json');
  }
  /** The kubeconfig of another cluster that is the seed. */
  get seedKubeconfig(): string {
    return this.path('seed-kubeconfig.yaml');
  }
  /** Where the way into a rootless seed begins. */
  get seedSocket(): string {
    return this.path('run', 'seed.sock');
  }
  /** What a person allows the mirror of images. */
  get registriesFile(): string {
    return this.path('registries.json');
  }
  /** Where pods may go. */
  get egressFile(): string {
    return this.path('egress.json');
  }
  /** Images that a person brought. */
  get loadedImages(): string {
    return this.path('seed', 'loaded');
  }
  /** Which command the garden ends with. */
  get holderFile(): string {
    return this.path('run', 'holder.json');
  }
  get daemonLock(): string {
    return this.path('run', 'daemon.lock');
  }
  /** Held by who starts the daemon or ends the garden: one of them at a time. */
  get changeLock(): string {
    return this.path('run', 'change.lock');
  }
  kubeconfigFile(user: string): string {
    return this.path('kubeconfig', `${user}.yaml`);
  }
  /** A certificate or key. */
  pki(name: string): string {
    return this.path('pki', name);
  }
  logFile(name: string): string {
    return this.path('log', `${name}.log`);
  }
  pidFile(name: string): string {
    return this.path('run', 'pids', `${name}.json`);
  }
  /** A configuration file made at each up. */
  config(name: string): string {
    return this.path('run', name);
  }

  async make(): Promise<void> {
    for (const folder of ['', 'pki', 'kubeconfig', 'log', 'run', 'run/pids', 'etcd', 'ns']) {
      await mkdir(this.path(folder), { recursive: true, mode: 0o700 });
    }
  }

  /** Undefined when there is no garden here. Throws when its file cannot be understood: it is never overwritten then. */
  async read(): Promise<GardenState | undefined> {
    const text = await readText(this.stateFile);
    if (text === undefined) return undefined;
    const { version, ...state } = (await readJson<GardenState & { version?: unknown }>(this.stateFile)) ?? {};
    if (typeof version === 'number' && version > FORMAT)
      throw new Error(`${openedByNewer(this.root)} (format ${version}, known up to ${FORMAT}): ${WAY_ON}`);
    if (typeof version === 'number' && version >= 1) return state as GardenState;
    throw new Error(`${this.stateFile} is damaged: restore it from a backup, or delete the garden with "coppice down"`);
  }

  async write(state: GardenState): Promise<void> {
    await writeAtomic(this.stateFile, `${JSON.stringify({ version: FORMAT, ...state }, undefined, 2)}\n`);
  }
}
