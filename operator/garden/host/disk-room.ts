import { statfs } from 'node:fs/promises';

/** Disk space that images never use: a garden whose etcd finds a full disk stops. */
export const KEPT_FREE_BYTES = 512 * 1024 ** 2;
/** Bytes written between two checks of the disk. */
const ROOM_STEP_BYTES = 64 * 1024 ** 2;

/** Free bytes on a folder's disk for users other than root. */
export async function diskRoom(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}

/** The disk would become too full for etcd. */
export class NoRoomError extends Error {
  override readonly name = 'NoRoomError';
}

/**
 * Passes a stream to a file's writer while KEPT_FREE_BYTES stay free on its disk; for content of unknown size, for
 * example unpacked archives.
 * @param what for the error, "the unpacked app.tar.gz". Throws NoRoomError
 */
export async function* whileRoom(
  source: AsyncIterable<Buffer>,
  folder: string,
  what: string,
  room = diskRoom,
): AsyncGenerator<Buffer> {
  let written = ROOM_STEP_BYTES;
  for await (const chunk of source) {
    if (written >= ROOM_STEP_BYTES) {
      written = 0;
      if ((await room(folder)) < KEPT_FREE_BYTES + ROOM_STEP_BYTES)
        throw new NoRoomError(`the disk of ${folder} has no room for ${what}`);
    }
    written += chunk.length;
    yield chunk;
  }
}
