import { appendFileSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { withLock } from '../../../operator/garden/toolchain/lock.ts';
import type { Account, CloudName, CloudResource, Operation } from './model.ts';

// Transactions take well under a millisecond; who waits should not wait longer than that by much.
const LOCK_POLL_MS = 3;

/** One request to the cloud, as its audit trail has it. */
export interface RequestSeen {
  /** Unix milliseconds. */
  at: number;
  /** The plugin process. */
  pid: number;
  cloud: CloudName;
  account: string;
  operation: Operation;
  /** As CloudResource.type; for an invoke its token. */
  type: string;
  name: string;
  region: string;
  /** `ok`; the first line of the error; `lost` when no answer was sent; absent while it is going on or when its process was killed. */
  outcome?: string;
}

/** The cloud's memory: a directory that any number of plugin processes and a test share. */
export interface Store {
  dir: string;
  /** Everything that exists, what is on its way out included. */
  list(now?: number): CloudResource[];
  put(resource: CloudResource): void;
  remove(resource: CloudResource): void;
  /** Runs `work` while no other process changes anything. */
  transaction<T>(work: () => T | Promise<T>): Promise<T>;
  accounts(): Account[];
  /** Undefined when there is no such file. */
  readJSON<T>(...path: string[]): T | undefined;
  /** All JSON files of a folder. */
  listJSON<T>(folder: string): T[];
  writeJSON(value: unknown, ...path: string[]): void;
  /** Notes that a request began; call the result with how it ended. */
  logRequest(request: Omit<RequestSeen, 'at' | 'pid' | 'outcome'>): (outcome: string) => void;
  requests(): RequestSeen[];
}

const RESOURCES = 'resources';
const REQUESTS = 'requests.jsonl';

const fileOf = (resource: CloudResource): string => `${resource.type.replaceAll(/[^\w-]/g, '.')}-${resource.uid}.json`;

const readText = (file: string): string | undefined => {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    // Deleted since it was listed, or never there.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
};

/** Drafts left out. */
function filesOf(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => name.endsWith('.json'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

// Of the process, which may open one memory several times.
let drafts = 0;
let requests = 0;

/** Opens the memory in `dir`, made if need be. */
export function openStore(dir: string): Store {
  const folder = join(dir, RESOURCES);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const write = (file: string, value: unknown): void => {
    const draft = `${file}.${process.pid}.${++drafts}.draft`;
    writeFileSync(draft, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
    renameSync(draft, file);
  };
  const readJSON = <T>(...path: string[]): T | undefined => {
    const text = readText(join(dir, ...path));
    return text === undefined ? undefined : (JSON.parse(text) as T);
  };
  return {
    dir,
    list(now = Date.now()) {
      return filesOf(folder)
        .flatMap((name) => readJSON<CloudResource>(RESOURCES, name) ?? [])
        .filter(({ goneAt }) => goneAt === undefined || goneAt > now)
        .sort((a, b) => a.createdAt - b.createdAt);
    },
    put: (resource) => write(join(folder, fileOf(resource)), resource),
    remove: (resource) => rmSync(join(folder, fileOf(resource)), { force: true }),
    transaction: (work) => withLock(join(dir, 'lock'), async () => await work(), { pollMs: LOCK_POLL_MS }),
    accounts: () => readJSON<Account[]>('accounts.json') ?? [],
    readJSON,
    listJSON: (name) => filesOf(join(dir, name)).flatMap((file) => readJSON(name, file) ?? []),
    writeJSON(value, ...path) {
      const file = join(dir, ...path);
      mkdirSync(join(file, '..'), { recursive: true, mode: 0o700 });
      write(file, value);
    },
    logRequest(request) {
      const id = `${process.pid}/${++requests}`;
      const append = (line: object) =>
        appendFileSync(join(dir, REQUESTS), `${JSON.stringify(line)}\n`, { mode: 0o600 });
      append({ id, at: Date.now(), pid: process.pid, ...request });
      return (outcome) => append({ id, outcome: outcome.trim().split('\n')[0] });
    },
    requests() {
      const byId = new Map<string, RequestSeen>();
      for (const line of (readText(join(dir, REQUESTS)) ?? '').split('\n')) {
        if (line === '') continue;
        const { id, ...fields } = JSON.parse(line) as { id: string } & RequestSeen;
        byId.set(id, { ...byId.get(id), ...fields });
      }
      return [...byId.values()];
    },
  };
}
