// Runs in a private network's namespace: a network load balancer that leads to machines whose API server says that it is ready. It
// connects with an address of its own, as one that does not preserve clients'. Arguments: address, port, file with the instances.
import { get } from 'node:https';
import { connect, createServer } from 'node:net';
import type { LaunchedInstance } from '../cloud/index.ts';
import { readJSON } from './internet.ts';

const [address = '', port = '', file = ''] = process.argv.slice(2);
const LOOK_MS = 1000;
let healthy: string[] = [];
let turn = 0;

const isReady = (host: string): Promise<boolean> =>
  new Promise((resolve) => {
    // Nobody who checks health at AWS looks at certificates.
    const asked = get(
      { host, port, path: '/readyz', rejectUnauthorized: false, timeout: 3000, agent: false },
      (answer) => {
        answer.resume();
        resolve(answer.statusCode === 200);
      },
    );
    asked.on('error', () => resolve(false));
    asked.on('timeout', () => asked.destroy());
  });

async function look(): Promise<void> {
  const instances = await readJSON<LaunchedInstance[]>(file).catch(() => []);
  const found = await Promise.all(instances.map(async (one) => ((await isReady(one.address)) ? [one.address] : [])));
  healthy = found.flat();
  setTimeout(() => void look(), LOOK_MS);
}

const server = createServer({ allowHalfOpen: true }, (client) => {
  const target = healthy[turn++ % Math.max(1, healthy.length)];
  client.on('error', () => client.destroy());
  if (target === undefined) return void client.destroy();
  const machine = connect({ host: target, port: Number(port), allowHalfOpen: true });
  machine.on('error', () => client.destroy());
  client.on('close', () => machine.destroy());
  machine.on('close', () => client.destroy());
  client.pipe(machine).pipe(client);
});
server.listen(Number(port), address, () => console.log('ready'));
void look();
// It lives as long as who started it.
process.stdin.resume().on('end', () => process.exit(0));
