import { statfs } from 'node:fs/promises';

/** Bytes that images never take of a disk: a garden whose etcd finds a full disk stops. */
export const KEPT_FREE_BYTES = 512 * 1024 ** 2;
/** Bytes that may be written between two looks at the disk. */
const ROOM_STEP_BYTES = 64 * 1024 ** 2;

/** Bytes that are free on the disk of a folder, for those who are not root. */
export async function diskRoom(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}

/** The disk would be too full for etcd, which is on it. */
export class NoRoomError extends Error {
  override readonly name = 'NoRoomError';
}

/**
 * Passes on what is written to a file of a folder, as long as KEPT_FREE_BYTES stay free there. For content whose size nobody knows before it
 * is there, for example unpacked content.
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
