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
 * A listening socket in another network namespace: a short-lived process makes it there and hands it over. What is
 * accepted is served by this process, in its own namespace. Rejects when the address is taken.
 */
export function listenInNamespace(namespaceFile: string, host: string, port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const child = spawn(
      'nsenter',
      [`--net=${namespaceFile}`, process.execPath, fileURLToPath(import.meta.url), host, String(port)],
      { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] },
    );
    let isDone = false;
    child.on('message', (message: Opened | Failed, handle) => {
      isDone = true;
      child.disconnect();
      if ('error' in message) reject(new Error(`cannot listen on ${host}:${port} in the seed: ${message.error}`));
      else resolve(handle as Server);
    });
    child.on('error', reject);
    child.on('exit', (code) => {
      if (!isDone) reject(new Error(`cannot listen on ${host}:${port} in the seed: exit code ${code}`));
    });
  });
}

/** A hand-over takes milliseconds. */
const HANDOVER_MS = 10_000;

/** The process in the namespace. It goes when its parent has the socket, or is gone. */
function serveAsChild(host: string, port: number): void {
  const server = createServer({ pauseOnConnect: true });
  server.on('error', (error) => process.send?.({ error: error.message } satisfies Failed));
  server.listen({ host, port, exclusive: true }, () => process.send?.({ opened: true } satisfies Opened, server));
  process.on('disconnect', () => process.exit(0));
  // A parent that is killed in the middle of the hand-over does not always end the channel: two such were found, a garden later.
  setTimeout(() => process.exit(1), HANDOVER_MS);
}

if (process.argv[1] === fileURLToPath(import.meta.url) && process.send) {
  serveAsChild(process.argv[2]!, Number(process.argv[3]));
}
