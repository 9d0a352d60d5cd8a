import { statfs } from 'node:fs/promises';

/** Bytes that images never take of a disk: a garden whose etcd finds a full disk stops. */
export const KEPT_FREE_BYTES = 512 * 1024 ** 2;

/** Bytes that are free on the disk of a folder, for those who are not root. */
export async function diskRoom(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}
