import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { basename, join } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import { promisify } from 'node:util';
import { goArchitecture } from '../host/architecture.ts';
import type { ToolCache } from './cache.ts';
import type { Network } from './network.ts';
import { type Archive, type Checksum, TOOLS, type ToolName, toolBundleOf } from './tools.ts';

const CHECKSUM_PATIENCE_MS = 10_000;

/** The release archive of a tool for this machine. Throws where the project publishes none. */
export function archiveFor(name: ToolName, nodeArch: string = process.arch, platform = process.platform): Archive {
  const { archive } = TOOLS[name];
  const arch = goArchitecture(nodeArch);
  if (!archive) throw new Error(`${name} has no release archive`);
  if (!arch || platform !== 'linux') throw new Error(`there is no release archive for ${platform} on ${nodeArch}`);
  const fill = (text: string) => text.replaceAll('{arch}', arch).replaceAll('{node-arch}', nodeArch);
  return {
    url: fill(archive.url),
    checksum: { ...archive.checksum, url: fill(archive.checksum.url) },
    member: archive.member && fill(archive.member),
  };
}

/** SHA-256 in hex of a file from a published checksum. Throws when it has none. */
export function publishedDigest(text: string, format: Checksum['format'], file: string): string {
  if (format === 'github-asset') {
    const { assets } = JSON.parse(text) as { assets?: { name: string; digest?: string | null }[] };
    const digest = assets?.find((asset) => asset.name === file)?.digest;
    if (digest?.startsWith('sha256:')) return digest.slice('sha256:'.length);
    throw new Error(`no checksum is published for ${file}`);
  }
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  for (const line of lines) {
    const match = /^([0-9a-f]{64})(?:\s+\*?(\S+))?\s*$/i.exec(line);
    if (!match) continue;
    const named = match[2] && basename(match[2]);
    if (named === file || (named === undefined && lines.length === 1)) return match[1]!.toLowerCase();
  }
  throw new Error(`no checksum is published for ${file}`);
}

/**
 * Downloads the official release of a tool (and of its bundle) into the cache. Throws when it is unavailable or its
 * checksum differs.
 */
export async function fetchArchive(
  name: ToolName,
  cache: ToolCache,
  network: Network,
  options: { onFraction?: (fraction: number) => void; signal?: AbortSignal; workFolder: string },
): Promise<void> {
  const archive = archiveFor(name);
  const file = basename(new URL(archive.url).pathname);
  const checksum = await network.get(archive.checksum.url, withLimit(options.signal, CHECKSUM_PATIENCE_MS));
  const expected = publishedDigest(await checksum.text(), archive.checksum.format, file);

  const response = await network.get(archive.url, options.signal);
  if (!response.body) throw new Error(`${archive.url} answers with no data`);
  const total = Number(response.headers.get('content-length') ?? 0);
  const hash = createHash('sha256');
  let received = 0;
  const watch = new Transform({
    transform(chunk: Buffer, _, done) {
      hash.update(chunk);
      received += chunk.length;
      if (total > 0) options.onFraction?.(Math.min(1, received / total));
      done(null, chunk);
    },
  });
  const download = join(options.workFolder, 'download');
  await pipeline(Readable.fromWeb(response.body as ReadableStream), watch, createWriteStream(download), {
    signal: options.signal,
  });
  const actual = hash.digest('hex');
  if (actual !== expected) throw new Error(`${file} has SHA-256 ${actual}, but the published one is ${expected}`);

  if (archive.member === undefined) {
    await cache.install(name, download);
    return;
  }
  const names = toolBundleOf(name);
  const members = names.map((other) => archiveFor(other).member!);
  await promisify(execFile)('tar', ['-xzf', download, '-C', options.workFolder, ...members], {
    signal: options.signal,
  });
  for (const [i, other] of names.entries()) await cache.install(other, join(options.workFolder, members[i]!));
}

const withLimit = (signal: AbortSignal | undefined, ms: number): AbortSignal =>
  signal ? AbortSignal.any([signal, AbortSignal.timeout(ms)]) : AbortSignal.timeout(ms);
