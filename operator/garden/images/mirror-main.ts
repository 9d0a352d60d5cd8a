import { parseArgs } from 'node:util';
import { pino } from 'pino';
import { startMirror } from './mirror.ts';

const USAGE = 'usage: node mirror-main.ts --listen ADDRESS:PORT --dir FOLDER [--expect NAME:TAG,...]';

const { values } = parseArgs({
  options: { listen: { type: 'string' }, dir: { type: 'string' }, expect: { type: 'string' } },
});
const listen = /^\[?([^\]]+)\]?:(\d+)$/.exec(values.listen ?? '');
if (!listen || !values.dir) {
  console.error(USAGE);
  process.exit(2);
}
const log = pino({ name: 'mirror' });
const expected = (values.expect ?? '').split(',').filter(Boolean);
const mirror = await startMirror({ dir: values.dir, host: listen[1]!, port: Number(listen[2]), expected, log });
log.info({ url: mirror.url, dir: values.dir }, 'mirror listens');
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, () => void mirror.close().then(() => process.exit(0)));
}
