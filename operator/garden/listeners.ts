import { spawn } from 'node:child_process';
import { createServer, type Server } from 'node:net';
import { fileURLToPath } from 'node:url';

interface Opened {
  opened: true;
}
interface Failed {
  error: string;
}

/**
 * Listening sockets in another network namespace, one for each address: a short-lived process makes them there and hands them over. What is
 * accepted is served by this process, in its own namespace. Rejects when one of them is taken; then none is left open.
 * @param enter the words before a command that is to run there
 */
export function listenInNamespace(enter: readonly string[], hosts: readonly string[], port: number): Promise<Server[]> {
  return new Promise((resolve, reject) => {
    const [program = '', ...words] = enter;
    const child = spawn(program, [...words, process.execPath, fileURLToPath(import.meta.url), String(port), ...hosts], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const servers: Server[] = [];
    const fail = (why: string) =>
      reject(new Error(`cannot listen on port ${port} of ${hosts.join(', ')} in the seed: ${why}`));
    let isDone = false;
    child.on('message', (message: Opened | Failed, handle) => {
      if ('opened' in message) servers.push(handle as Server);
      isDone = 'error' in message || servers.length === hosts.length;
      if (!isDone) return;
      child.disconnect();
      if ('error' in message) fail(message.error);
      else resolve(servers);
    });
    child.on('error', reject);
    child.on('exit', (code) => {
      if (!isDone) fail(`exit code ${code}`);
    });
  });
}

/** A hand-over takes milliseconds. */
const HANDOVER_MS = 10_000;

/** The process in the namespace. It goes when its parent has the sockets, or is gone. */
async function serveAsChild(port: number, hosts: readonly string[]): Promise<void> {
  process.on('disconnect', () => process.exit(0));
  // A parent that is killed in the middle of the hand-over does not always end the channel: two such were found, a garden later.
  setTimeout(() => process.exit(1), HANDOVER_MS);
  const open = (host: string) =>
    new Promise<Server>((resolve, reject) => {
      const server = createServer({ pauseOnConnect: true });
      server.once('error', reject);
      server.listen({ host, port, exclusive: true }, () => resolve(server));
    });
  try {
    // All or none is handed over: nobody would close those that come after the parent has given up.
    const servers = await Promise.all(hosts.map(open));
    for (const server of servers) process.send?.({ opened: true } satisfies Opened, server);
  } catch (error) {
    process.send?.({ error: (error as Error).message } satisfies Failed);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url) && process.send) {
  const [port, ...hosts] = process.argv.slice(2);
  await serveAsChild(Number(port), hosts);
}
