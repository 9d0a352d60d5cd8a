import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isStaticExecutable } from '../../../operator/garden/toolchain/elf.ts';

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'coppice-elf-'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

/** An ELF file with program headers of these types and nothing else. */
const elf = (types: number[]): Buffer => {
  const file = Buffer.alloc(64 + types.length * 56);
  file.writeUInt32BE(0x7f454c46, 0);
  file.set([2, 1, 1], 4);
  file.writeBigUInt64LE(64n, 32);
  file.writeUInt16LE(56, 54);
  file.writeUInt16LE(types.length, 56);
  for (const [i, type] of types.entries()) file.writeUInt32LE(type, 64 + i * 56);
  return file;
};

test.each([
  ['static', elf([6, 1, 1]), true],
  ['with an interpreter', elf([6, 3, 1]), false],
  ['a script', Buffer.from('#!/bin/sh\nexec kubectl.real "$@"\n'), false],
  ['empty', Buffer.alloc(0), false],
])('%s', async (name, content, expected) => {
  const file = join(dir, name);
  await writeFile(file, content);
  expect(await isStaticExecutable(file)).toBe(expected);
});
