import { open } from 'node:fs/promises';

const PT_INTERP = 3;

/** Whether a file is a statically linked 64-bit ELF executable. False for scripts and other files. */
export async function isStaticExecutable(file: string): Promise<boolean> {
  const handle = await open(file, 'r');
  try {
    const head = Buffer.alloc(4096);
    const { bytesRead } = await handle.read(head, 0, head.length, 0);
    const isElf64 = bytesRead >= 64 && head.readUInt32BE(0) === 0x7f454c46 && head[4] === 2 && head[5] === 1;
    if (!isElf64) return false;
    const offset = Number(head.readBigUInt64LE(32));
    const size = head.readUInt16LE(54);
    const count = head.readUInt16LE(56);
    for (let i = 0; i < count; i++) {
      const at = offset + i * size;
      // Program headers follow the file's header; Go's linker never places them further away.
      if (at + 4 > bytesRead) return false;
      if (head.readUInt32LE(at) === PT_INTERP) return false;
    }
    return true;
  } finally {
    await handle.close();
  }
}
