import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer as createTLSServer } from 'node:https';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { run } from '../../../operator/garden/host/command.ts';
import { createCA, issue } from '../../../operator/pki/certificates.ts';
import { hasAllCases } from '../../kit/cases.ts';

const INSTALL = fileURLToPath(new URL('../../../providers/machines/install.sh', import.meta.url));
/** Both of the script's limits, the pause before another try, and a busy machine. */
const PATIENCE_MS = 4 * 60_000;

/** A server of releases whose first connections go as `first` says. */
async function releases(first: ((socket: Socket) => void)[]) {
  const dir = await mkdtemp(join(tmpdir(), 'coppice-install-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  const ca = await createCA({ commonName: 'internet', days: 2 });
  const { cert, key } = await issue(ca, {
    commonName: 'localhost',
    dnsNames: ['localhost'],
    usages: ['server'],
    days: 2,
  });
  await writeFile(join(dir, 'ca.crt'), ca.cert);
  const tls = createTLSServer({ cert, key }, (_, response) => void response.end('a release'));
  const slow = createTLSServer({ cert, key }, (_, response) => {
    response.writeHead(200, { 'content-length': 9 });
    response.write('a rel');
  });
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    const handle = first.shift() ?? ((one) => tls.emit('connection', one));
    handle(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    tried: () => sockets.length,
    standStill: (socket: Socket) => void slow.emit('connection', socket),
    get: async (): Promise<string> => {
      const output = join(dir, 'file');
      // As the script has it, without what it does to the machine that it runs on. In the short run its limits are a tenth.
      const [whole] = /^get\(\)[\s\S]*?^\}/m.exec(await readFile(INSTALL, 'utf8'))!;
      const download = hasAllCases() ? whole : whole.replaceAll(/(-timeout|-time) (\d+)0\b/g, '$1 $2');
      const command = [
        'bash',
        '-euc',
        `${download}\nget "$1" "$2"`,
        'install',
        `https://localhost:${port}/release`,
        output,
      ];
      await run(['env', `CURL_CA_BUNDLE=${join(dir, 'ca.crt')}`, ...command], { timeoutMs: PATIENCE_MS });
      return readFile(output, 'utf8');
    },
  };
}

const curl = await run(['curl', '--version']).catch((error: Error) => {
  console.warn(`integration: downloads of machines are not tried here: ${error.message}`);
  return undefined;
});

it.skipIf(curl === undefined)(
  'the install script retries a download that is refused or stalls',
  {
    timeout: PATIENCE_MS,
  },
  async () => {
    const first: ((socket: Socket) => void)[] = [];
    const { get, tried, standStill } = await releases(first);
    first.push(() => {}, standStill);
    expect(await get()).toBe('a release');
    expect(tried()).toBe(3);
  },
);
