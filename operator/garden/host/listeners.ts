import { spawn } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { createServer, type Server } from 'node:net';
import { fileURLToPath } from 'node:url';

interface Opened {
  opened: true;
}
/** All sockets are handed over, and the creating process accepts no more connections. */
interface HandedOver {
  done: true;
}
interface Failed {
  error: string;
}

/** Sockets to open on a port: TCP or UDP per address. */
interface Wanted {
  protocol: 'tcp' | 'udp';
  host: string;
}

/**
 * Listening sockets in another network namespace, one per address: a short-lived process opens them there and hands
 * them over. This process serves the connections in its own namespace. Rejects when one is in use; then none is left
 * open.
 * @param enter command prefix that enters the namespace
 */
export const listenInNamespace = (
  enter: readonly string[],
  hosts: readonly string[],
  port: number,
): Promise<Server[]> =>
  openInNamespace(
    enter,
    hosts.map((host) => ({ protocol: 'tcp', host })),
    port,
  ) as Promise<Server[]>;

/** The same for TCP and UDP of one address. */
export const listenByBoth = (enter: readonly string[], host: string, port: number): Promise<[Server, Socket]> =>
  openInNamespace(
    enter,
    [
      { protocol: 'tcp', host },
      { protocol: 'udp', host },
    ],
    port,
  ) as Promise<(Server | Socket)[]> as Promise<[Server, Socket]>;

function openInNamespace(
  enter: readonly string[],
  wanted: readonly Wanted[],
  port: number,
): Promise<(Server | Socket)[]> {
  return new Promise((resolve, reject) => {
    const words = wanted.flatMap(({ protocol, host }) => [protocol, host]);
    const [program = '', ...entering] = enter;
    const child = spawn(
      program,
      [...entering, process.execPath, fileURLToPath(import.meta.url), String(port), ...words],
      { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] },
    );
    const sockets: (Server | Socket)[] = [];
    const hosts = [...new Set(wanted.map(({ host }) => host))].join(', ');
    const fail = (why: string) => reject(new Error(`cannot listen on port ${port} of ${hosts} in the seed: ${why}`));
    let isDone = false;
    child.on('message', (message: Opened | HandedOver | Failed, handle) => {
      if ('opened' in message) {
        sockets.push(handle as Server | Socket);
        return;
      }
      isDone = true;
      child.disconnect();
      if ('error' in message) fail(message.error);
      else resolve(sockets);
    });
    child.on('error', reject);
    child.on('exit', (code) => {
      if (!isDone) fail(`exit code ${code}`);
    });
  });
}

/** A hand-over takes milliseconds. */
const HANDOVER_MS = 10_000;

const listen = (host: string, port: number): Promise<Server> =>
  new Promise((resolve, reject) => {
    const server = createServer({ pauseOnConnect: true });
    server.once('error', reject);
    server.listen({ host, port, exclusive: true }, () => resolve(server));
  });

const bind = (address: string, port: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = createSocket('udp4');
    socket.once('error', reject);
    socket.bind({ address, port, exclusive: true }, () => resolve(socket));
  });

/** The process in the namespace. It exits when its parent has the sockets, or is gone. */
async function serveAsChild(port: number, wanted: readonly Wanted[]): Promise<void> {
  process.on('disconnect', () => process.exit(0));
  // A parent killed during the hand-over does not always close the channel: two such processes were found a garden
  // later.
  setTimeout(() => process.exit(1), HANDOVER_MS);
  try {
    // All or none are handed over: later ones would stay open after the parent has given up.
    const sockets = await Promise.all(
      wanted.map(({ protocol, host }) => (protocol === 'tcp' ? listen(host, port) : bind(host, port))),
    );
    for (const socket of sockets) {
      await new Promise((resolve) => process.send?.({ opened: true } satisfies Opened, socket, undefined, resolve));
      // New connections would otherwise be accepted here too, and lost with this process.
      await new Promise<void>((resolve) => void socket.close(() => resolve()));
    }
    process.send?.({ done: true } satisfies HandedOver);
  } catch (error) {
    process.send?.({ error: (error as Error).message } satisfies Failed);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url) && process.send) {
  const [port, ...words] = process.argv.slice(2);
  const wanted: Wanted[] = [];
  for (let i = 0; i + 1 < words.length; i += 2)
    wanted.push({ protocol: words[i] === 'udp' ? 'udp' : 'tcp', host: words[i + 1]! });
  await serveAsChild(Number(port), wanted);
}
