import { COMPONENTS } from '../../operator/api/names.ts';
import type { KubeClient } from '../../operator/kube/client.ts';
import { type Memory, memoryOf, type Process } from './processes.ts';

/** What a process of an API server's pod has beside the API server. */
export interface ServerPod {
  /** PSS of the API server, MiB. */
  server: number;
  /** PSS of its pod's shim and of every pause in it, KiB. */
  rest: number;
  /** From the first process in the pod's network to the API server's, milliseconds; the kernel counts hundredths of a second. */
  startMs: number;
}

/** @param processes of the pod alone, its shim among them. Throws where no API server runs in it. */
export function serverPod(processes: readonly Process[], memory: (pid: number) => Memory = memoryOf): ServerPod {
  const server = processes.find(({ name }) => name === COMPONENTS.apiServer);
  const rest = processes.filter(({ isSandbox }) => isSandbox);
  const inPod = rest.filter(({ component }) => component === undefined);
  if (!server || inPod.length === 0) throw new Error('no API server runs in this pod');
  return {
    server: memory(server.pid).share,
    rest: rest.reduce((sum, { pid }) => sum + memory(pid).share, 0) * 1024,
    startMs: (server.startedAt - Math.min(...inPod.map(({ startedAt }) => startedAt))) * 1000,
  };
}

const ASKED = 100;

/**
 * How long a GET takes that the API server answers itself, and one that it has a pod answer, milliseconds; each the median of a hundred, in
 * turn.
 */
export async function asked(client: KubeClient, pod: string): Promise<{ own: number; pod: number }> {
  const path = `/api/v1/namespaces/default/pods/${pod}`;
  const times = { own: [] as number[], pod: [] as number[] };
  for (let i = 0; i < ASKED; i++) {
    for (const [what, where] of [
      ['own', path],
      ['pod', `${path}:8080/proxy/`],
    ] as const) {
      const from = performance.now();
      await client.request('GET', where, { retries: 0 });
      times[what].push(performance.now() - from);
    }
  }
  const median = (values: number[]) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
  return { own: median(times.own), pod: median(times.pod) };
}
