// Runs in a private network's namespace: its metadata service, its resolver, and the internet behind it. Argument: file with ServicesConfig.
import { startMirror } from '../../../operator/garden/images/mirror.ts';
import type { LaunchedInstance } from '../cloud/index.ts';
import { internet, NAMES, readJSON } from './internet.ts';
import { metadataService } from './metadata.ts';
import { resolver } from './names.ts';
import type { ServicesConfig } from './services.ts';
import { METADATA, SURROUNDINGS } from './surroundings.ts';
import { VPC } from './vpc.ts';

const { cloud, cert, key, releases, images, instances } = await readJSON<ServicesConfig>(process.argv[2]!);
const mirror = await startMirror({ dirs: [images], host: '127.0.0.1', port: 0 });
const surroundings = SURROUNDINGS[cloud];
const metadata = metadataService(surroundings.metadata, () => readJSON<LaunchedInstance[]>(instances));
const web = internet({ cert, key }, releases, mirror.url);
const internetNames = Object.fromEntries(NAMES.map((name) => [name, VPC.internet]));
const names = resolver({ ...internetNames, ...surroundings.names });
await Promise.all([
  new Promise<void>((resolve) => metadata.listen(80, METADATA, resolve)),
  new Promise<void>((resolve) => web.listen(443, VPC.internet, resolve)),
  new Promise<void>((resolve) => names.bind(53, surroundings.resolver, resolve)),
]);
console.log('ready');
// It lives as long as who started it.
process.stdin.resume().on('end', () => process.exit(0));
