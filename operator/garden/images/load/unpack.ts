import { createReadStream, createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { diskRoom, whileRoom } from '../../host/disk-room.ts';
import { compressionOf } from './archive.ts';

/**
 * The archive as a plain tar: itself, or an unpacked copy in `folder`. Throws NoRoomError where the copy would fill the
 * disk: gzip and zstd can expand megabytes to gigabytes.
 */
export async function unpackArchive(path: string, folder: string, room = diskRoom): Promise<string> {
  const packed = await packedBy(path);
  if (!packed) return path;
  const unpack = packed === 'gzip' ? createGunzip() : createZstdDecompress();
  const copy = join(folder, 'archive.tar');
  await pipeline(
    createReadStream(path),
    unpack,
    (content: AsyncIterable<Buffer>) => whileRoom(content, folder, `the unpacked ${path}`, room),
    createWriteStream(copy, { mode: 0o600 }),
  );
  return copy;
}

async function packedBy(path: string): ReturnType<typeof compressionOf> {
  const handle = await open(path);
  try {
    const { size } = await handle.stat();
    return await compressionOf(handle, { offset: 0, size });
  } finally {
    await handle.close();
  }
}
