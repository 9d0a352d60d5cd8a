import { Duplex, PassThrough } from 'node:stream';
import { KubeConfig, PortForward } from '@kubernetes/client-node';

/** Opens a stream of bytes to a port of a pod. */
export type PodDialer = (namespace: string, pod: string, port: number) => Promise<Duplex>;

/** A dialer that goes through the cluster's API server, as `kubectl port-forward` does: for pods that have no way from here. */
export function podDialer(kubeconfig: string): PodDialer {
  const config = new KubeConfig();
  config.loadFromString(kubeconfig);
  const forward = new PortForward(config);
  return async (namespace, pod, port) => {
    const [toPod, fromPod, refusal] = [new PassThrough(), new PassThrough(), new PassThrough()];
    const stream = Duplex.from({ writable: toPod, readable: fromPod });
    refusal.once('data', (text) =>
      stream.destroy(new Error(`pod ${namespace}/${pod}, port ${port}: ${String(text).trim()}`)),
    );
    const socket = await forward.portForward(namespace, pod, [port], fromPod, refusal, toPod);
    if (typeof socket === 'function') throw new TypeError('a tunnel is one connection');
    socket.onclose = () => fromPod.end();
    // client-node writes whatever comes: a snapshot of etcd that nobody reads as fast as it comes would fill the memory.
    socket.on('message', () => {
      if (fromPod.writableNeedDrain) socket.pause();
    });
    fromPod.on('drain', () => socket.resume());
    stream.once('close', () => socket.close());
    return stream;
  };
}
