import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { readJson, readText, writeAtomic } from '../host/files.ts';
import type { Ports } from '../host/ports.ts';
import type { Ranges } from '../host/ranges.ts';
import { coppiceHome } from '../toolchain/cache.ts';
import { openedByNewer, WAY_ON } from './known-fields.ts';

/**
 * Format of a garden's folder, including etcd's content. It increases when an older Coppice would lose or misread new
 * data: Coppice opens its own and earlier formats, and refuses later ones. Fields that people set are guarded
 * separately (known-fields.ts). Before 2 a garden did not refuse an older Coppice with fewer fields; before 3 Secrets
 * of the garden and its hosted clusters were not encrypted in etcd; before 4 those of clusters with a control plane on
 * machines were not.
 */
export const FORMAT = 4;
/** Programs that write data of this format: an older minor version cannot open it. A change of one is a new format. */
export const WRITERS_OF_FORMAT = { etcd: '3.7', kubernetes: '1.36' } as const;

/** State of a garden that persists between two `up`. */
export interface GardenState {
  id: string;
  createdAt: string;
  ports: Ports;
  ranges: Ranges;
  /** `local`: control planes run on this machine; `kubeconfig`: on another cluster; `none`: no seed. */
  seed: 'local' | 'kubeconfig' | 'none';
  /** The local seed is rootless: it hosts control planes but no machines. */
  rootless?: true;
  /** The Hub `inventory` was created: a deleted one is not recreated. Absent in gardens from before the Hub existed. */
  inventory?: boolean;
}

/** Paths of a garden's files. Every folder is private to the user. */
export class StateDirectory {
  readonly home: string;
  readonly root: string;
  /** Distinguishes this garden's interfaces, namespaces and cgroups from those of others on the machine. */
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
  /** Settable fields of the last Coppice that opened the garden. */
  get fieldsFile(): string {
    return this.path('fields.json');
  }
  get statusFile(): string {
    return this.path('run', 'status.json');
  }
  /** Kubeconfig of another cluster that is the seed. */
  get seedKubeconfig(): string {
    return this.path('seed-kubeconfig.yaml');
  }
  /** Socket of the proxy into a rootless seed. */
  get seedSocket(): string {
    return this.path('run', 'seed.sock');
  }
  /** Registry settings of the image mirror. */
  get registriesFile(): string {
    return this.path('registries.json');
  }
  /** Outbound policy of pods. */
  get egressFile(): string {
    return this.path('egress.json');
  }
  /** Images that a person loaded. */
  get loadedImages(): string {
    return this.path('seed', 'loaded');
  }
  /** The command with which the garden ends. */
  get holderFile(): string {
    return this.path('run', 'holder.json');
  }
  get daemonLock(): string {
    return this.path('run', 'daemon.lock');
  }
  /** Held while the daemon is started or the garden is ended: one at a time. */
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
  /** A configuration file generated at each `up`. */
  config(name: string): string {
    return this.path('run', name);
  }

  async make(): Promise<void> {
    for (const folder of ['', 'pki', 'kubeconfig', 'log', 'run', 'run/pids', 'etcd', 'ns']) {
      await mkdir(this.path(folder), { recursive: true, mode: 0o700 });
    }
  }

  /** Undefined when there is no garden here. Throws when its file cannot be parsed: it is never overwritten then. */
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
