import { PassThrough } from 'node:stream';
import type { V1Status } from '@kubernetes/client-node';
import { keepAlive, streamsBy } from './pod-streams.ts';

/** Container in which a command runs. */
interface ExecTarget {
  namespace: string;
  pod: string;
  container: string;
}

const OUTPUT_BYTES = 64 * 1024;

/**
 * Runs a command in a container, as `kubectl exec` does. Resolves with its output, of which 64 KiB are kept. Throws
 * with the end of the output when the command fails or exceeds `timeoutMs`.
 */
export async function execInPod(
  kubeconfig: string,
  { namespace, pod, container }: ExecTarget,
  command: string[],
  timeoutMs: number,
): Promise<string> {
  const [{ Exec }, config] = await Promise.all([import('@kubernetes/client-node'), streamsBy(kubeconfig)]);
  let output = '';
  const stream = new PassThrough();
  stream.on('data', (chunk) => {
    output = `${output}${chunk}`.slice(-OUTPUT_BYTES);
  });
  const ended = Promise.withResolvers<V1Status>();
  const socket = await new Exec(config)
    .exec(namespace, pod, container, command, stream, stream, null, false, ended.resolve)
    // The WebSocket rejects with an event, whose text says nothing.
    .catch(({ message }: { message?: string }) => {
      throw new Error(`pod ${namespace}/${pod} cannot be entered: ${message ?? 'no connection'}`);
    });
  keepAlive(socket);
  socket.onclose = () => ended.reject(new Error(`the connection to pod ${namespace}/${pod} ended`));
  const late = setTimeout(() => ended.reject(new Error(`pod ${namespace}/${pod} took too long`)), timeoutMs);
  try {
    const { status, message } = await ended.promise;
    if (status === 'Success') return output;
    throw new Error(output.trim().split('\n').at(-1) || message || 'the command failed');
  } finally {
    clearTimeout(late);
    socket.close();
  }
}
