import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { digestOf, startRegistry, type TestImage, type TestRegistry } from './registry.ts';

const MIRROR = fileURLToPath(new URL('../../operator/garden/images/mirror-main.ts', import.meta.url));

type End = () => Promise<unknown>;

/** A mirror that runs. */
export interface Running {
  /** Asks as containerd does for an image of a registry. */
  ask: (registry: string, path: string, init?: RequestInit) => Promise<Response>;
  folder: string;
  /** Writes what a person allowed. */
  settings: (value: object) => Promise<void>;
}

/** What tests of the mirror share in a file: a registry that everybody may push to, and mirrors that end with the test. */
export class MirrorRig {
  root = '';
  plain!: TestRegistry;
  readonly #atEnd: End[] = [];
  readonly #afterTest: End[] = [];

  constructor() {
    beforeAll(async () => {
      this.root = await mkdtemp(join(tmpdir(), 'coppice-pull-'));
      this.plain = await startRegistry({ root: this.store });
      this.atEnd(this.plain.close, () => rm(this.root, { recursive: true, force: true }));
    });
    afterAll(async () => {
      for (const end of this.#atEnd) await end();
    });
    afterEach(async () => {
      for (const end of this.#afterTest.splice(0)) await end();
    });
  }

  /** Folder of what the registry has. */
  get store(): string {
    return join(this.root, 'store');
  }

  /** Does this after the test. */
  afterTest(...ends: End[]): void {
    this.#afterTest.push(...ends);
  }

  /** Does this after all tests of the file. */
  atEnd(...ends: End[]): void {
    this.#atEnd.unshift(...ends);
  }

  /** The mirror's own program, told what a person allowed, in an environment of its own. */
  async mirror(settings: object, env: Record<string, string> = {}, more: string[] = []): Promise<Running> {
    const folder = await mkdtemp(join(this.root, 'mirror-'));
    const file = join(folder, 'registries.json');
    const write = (value: object) => writeFile(file, JSON.stringify(value));
    await write(settings);
    await mkdir(join(folder, 'made'));
    const args = ['--listen', '127.0.0.1:0', '--dir', join(folder, 'made'), '--cache', join(folder, 'cache')];
    const child = spawn(
      process.execPath,
      [MIRROR, ...args, '--settings', file, '--seed', join(folder, 'seed'), ...more],
      {
        env: { PATH: process.env.PATH!, HOME: folder, ...env },
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    this.afterTest(() => ended(child));
    const url = await new Promise<string>((resolve, reject) => {
      createInterface({ input: child.stdout }).on('line', (line) => {
        const { url: said, msg } = JSON.parse(line) as { url?: string; msg: string };
        if (msg === 'mirror listens') resolve(said!);
      });
      child.once('exit', (code) => reject(new Error(`the mirror ended with ${code}`)));
    });
    const ask = (registry: string, path: string, init?: RequestInit) => fetch(`${url}/v2/${path}?ns=${registry}`, init);
    return { ask, folder, settings: write };
  }
}

const ended = (child: ChildProcess) =>
  new Promise<void>((resolve) => {
    if (child.exitCode !== null) return resolve();
    child.once('exit', () => resolve());
    child.kill('SIGTERM');
  });

/** The body of an answer. */
export const bytes = async (response: Response): Promise<Buffer> => Buffer.from(await response.arrayBuffer());

/** Pulls as containerd does: what the tag means, that manifest, its blobs. Resolves to all of it, checked. */
export async function pull(
  { ask }: Running,
  registry: string,
  repository: string,
  tag: string,
  init?: RequestInit,
): Promise<TestImage> {
  const head = await ask(registry, `${repository}/manifests/${tag}`, { ...init, method: 'HEAD' });
  if (head.status !== 200) throw new Error(`${head.status} ${head.statusText}`);
  const digest = head.headers.get('docker-content-digest')!;
  const found = await ask(registry, `${repository}/manifests/${digest}`, init);
  const manifest = await bytes(found);
  expect(digestOf(manifest)).toBe(digest);
  expect(String(manifest.length)).toBe(head.headers.get('content-length'));
  const { config, layers = [], manifests = [] } = JSON.parse(String(manifest));
  const blobs: Buffer[] = [];
  for (const blob of config ? [config, ...layers] : []) {
    const data = await bytes(await ask(registry, `${repository}/blobs/${blob.digest}`, init));
    expect(digestOf(data)).toBe(blob.digest);
    blobs.push(data);
  }
  for (const one of manifests)
    blobs.push(...(await pull({ ask } as Running, registry, repository, one.digest, init)).blobs);
  return { manifest, mediaType: found.headers.get('content-type')!, blobs };
}

/** The line that an answer begins with. */
export const statusOf = async (response: Promise<Response>): Promise<string> => {
  const { status, statusText } = await response;
  return `${status} ${statusText}`;
};
