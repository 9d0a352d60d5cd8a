import { Duplex, PassThrough } from 'node:stream';
import type { PortForward } from '@kubernetes/client-node';
import { keepAlive, streamsBy } from './pod-streams.ts';

/** Opens a byte stream to a port of a pod. */
export type PodDialer = (namespace: string, pod: string, port: number) => Promise<Duplex>;

/**
 * A dialer through the cluster's API server, as `kubectl port-forward` does: for pods that cannot be reached from here
 * directly.
 */
export function podDialer(kubeconfig: string | (() => string)): PodDialer {
  let loaded: Promise<PortForward> | undefined;
  return async (namespace, pod, port) => {
    loaded ??= portForward(typeof kubeconfig === 'string' ? kubeconfig : kubeconfig());
    const forward = await loaded.catch((error: unknown) => {
      loaded = undefined;
      throw error;
    });
    const [toPod, fromPod, refusal] = [new PassThrough(), new PassThrough(), new PassThrough()];
    const stream = Duplex.from({ writable: toPod, readable: fromPod });
    // The stream may be destroyed with an error before a caller listens: an unhandled error event would end the
    // process.
    stream.on('error', () => {});
    refusal.once('data', (text) =>
      stream.destroy(new Error(`pod ${namespace}/${pod}, port ${port}: ${String(text).trim()}`)),
    );
    const socket = await forward
      .portForward(namespace, pod, [port], fromPod, refusal, toPod)
      // The WebSocket rejects with an event, whose text says nothing.
      .catch(({ message }: { message?: string }) => {
        throw new Error(`pod ${namespace}/${pod}, port ${port}: ${message ?? 'no tunnel'}`);
      });
    if (typeof socket === 'function') throw new TypeError('a tunnel is one connection');
    keepAlive(socket);
    socket.onclose = () => fromPod.end();
    // client-node has no backpressure: a snapshot of etcd that is read slowly would fill the memory.
    socket.on('message', () => {
      if (fromPod.writableNeedDrain) socket.pause();
    });
    fromPod.on('drain', () => socket.resume());
    stream.once('close', () => socket.close());
    return stream;
  };
}

/** Loaded lazily: few gardens have a pod that cannot be dialled directly. */
async function portForward(kubeconfig: string): Promise<PortForward> {
  const [{ PortForward }, config] = await Promise.all([import('@kubernetes/client-node'), streamsBy(kubeconfig)]);
  return new PortForward(config);
}
