// A process that gets etcd from a cache where it must be "built": slowly, in pieces, and noted in a journal.
import { appendFile, open } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Toolchain } from '../../../operator/garden/toolchain/toolchain.ts';

const [dir, pieceMs] = process.argv.slice(2);
const journal = join(dir!, 'journal');
const toolchain = new Toolchain({
  dir,
  onProgress: ({ phase }) => void (phase === 'waiting' && process.stdout.write('waiting\n')),
  sources: {
    findOnPath: async () => ({ reason: 'not here' }),
    fetchArchive: () => Promise.reject(new Error('not there')),
    findGo: async () => '/usr/bin/false',
    dependencies: async () => new Set(['a']),
    goBuild: async (_go, names, folder) => {
      await appendFile(journal, `${process.pid}\n`);
      process.stdout.write('building\n');
      const handle = await open(join(folder, names[0]!), 'w');
      for (let i = 0; i < 10; i++) {
        await handle.write('piece\n');
        await sleep(Number(pieceMs));
      }
      await handle.close();
    },
  },
});
process.stdout.write(`${(await toolchain.ensure(['etcd'])).etcd}\n`);
await toolchain.close();
