import { copyFile, open, readdir, rm, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';

const MAX_BYTES = 16 * 1024 * 1024;

/**
 * Limits each log in a folder, and one older copy, to `maxBytes`. The file is truncated in place, since its process
 * keeps it open; a line written at that moment may be lost. On a full disk the older copy is deleted.
 */
export async function boundLogs(folder: string, maxBytes = MAX_BYTES): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    if (!name.endsWith('.log')) continue;
    const file = join(folder, name);
    const size = (await stat(file).catch(() => undefined))?.size ?? 0;
    if (size <= maxBytes) continue;
    await copyFile(file, `${file}.1`).catch(() => rm(`${file}.1`, { force: true, recursive: true }));
    await truncate(file);
  }
}

/** The last lines of a log, shown with an error. */
async function lastLines(file: string, count: number): Promise<string[]> {
  const handle = await open(file, 'r').catch(() => undefined);
  if (!handle) return [];
  try {
    const { size } = await handle.stat();
    const length = Math.min(size, 16_384);
    const { buffer } = await handle.read(Buffer.alloc(length), 0, length, size - length);
    return buffer.toString('utf8').trimEnd().split('\n').slice(-count);
  } finally {
    await handle.close();
  }
}

/** The log line that explains a process's exit: its last line that looks like an error, or its last line. */
export async function lastError(file: string): Promise<string> {
  const lines = await lastLines(file, 40);
  const telling = lines.findLast((line) =>
    /^[EF]\d{4} |level=(error|fatal)|"level":("error"|"fatal"|50|60)[,}]|^(\w+: )?\w*Error\b|panic/.test(line),
  );
  return inWords((telling ?? lines.at(-1) ?? '').trim()).slice(0, 400);
}

/** Message of a structured log line; other lines unchanged. */
function inWords(line: string): string {
  if (!line.startsWith('{')) return line;
  try {
    const { msg, err } = JSON.parse(line) as { msg?: unknown; err?: unknown };
    const said = [msg, err].filter((part) => typeof part === 'string' && part !== '');
    return said.length > 0 ? said.join(': ') : line;
  } catch {
    return line;
  }
}
