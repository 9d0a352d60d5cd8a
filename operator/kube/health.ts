import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Registry } from './metrics.ts';

/** Result of a health check: true is healthy; false, a text (the reason) or a rejection is unhealthy. */
export type Check = () => boolean | string | Promise<boolean | string>;

interface HealthOptions {
  /** 0: any free port. */
  port: number;
  /** Default 127.0.0.1. */
  host?: string;
  /** Checks for /readyz: all must be healthy. */
  checks?: Record<string, Check>;
  /** Checks for /livez: kubelet restarts the process when one is unhealthy. Default none. */
  liveness?: Record<string, Check>;
  registry?: Registry;
}

interface HealthServer {
  url: string;
  port: number;
  close(): Promise<void>;
}

const CHECK_TIMEOUT_MS = 5000;

/** Serves /livez, /readyz, /healthz (as /livez) and /metrics. Rejects when the port is taken. */
export async function serveHealth(options: HealthOptions): Promise<HealthServer> {
  const { port, host = '127.0.0.1', checks = {}, liveness = {}, registry } = options;
  const server = createServer((request, response) => {
    const answer = (status: number, text: string, type = 'text/plain; charset=utf-8') => {
      response.writeHead(status, { 'content-type': type }).end(text);
    };
    const answerChecks = async (wanted: Record<string, Check>) => {
      const results = await Promise.all(Object.entries(wanted).map(([name, check]) => runCheck(name, check)));
      const lines = results.map(({ name, problem }) => (problem ? `[-] ${name}: ${problem}` : `[+] ${name}`));
      const good = results.every(({ problem }) => !problem);
      answer(good ? 200 : 503, [...lines, good ? 'ok' : 'not ok', ''].join('\n'));
    };
    if (request.method !== 'GET' && request.method !== 'HEAD') return answer(405, 'GET only\n');
    const path = (request.url ?? '/').split('?')[0];
    if (path === '/readyz') return void answerChecks(checks);
    if (path === '/livez' || path === '/healthz') return void answerChecks(liveness);
    if (path === '/metrics' && registry) {
      return void registry.render().then(
        (text) => answer(200, text, registry.contentType),
        (error: unknown) => answer(500, `the metrics could not be written: ${String(error)}\n`),
      );
    }
    answer(404, 'not found\n');
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const bound = (server.address() as AddressInfo).port;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    port: bound,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function runCheck(name: string, check: Check): Promise<{ name: string; problem: string | undefined }> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve('no answer in time'), CHECK_TIMEOUT_MS);
  });
  try {
    const result = await Promise.race([(async () => check())(), late]);
    return { name, problem: result === true ? undefined : result === false ? 'no' : result };
  } catch (error) {
    return { name, problem: error instanceof Error ? error.message : String(error) };
  } finally {
    clearTimeout(timer);
  }
}
