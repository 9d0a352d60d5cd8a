import type { PodDialer } from '../../kube/pod-tunnel.ts';
import { EtcdClient } from '../../shoot/etcd-client.ts';
import { issueEtcdOperatorCertificate, keyPair, type PKIData } from '../../shoot/pki.ts';
import { type ControlPlane, etcdClientURL } from '../../shoot/values.ts';

/** Where the etcd of a shoot is. */
export interface EtcdPlace extends Pick<ControlPlane, 'namespace' | 'addresses' | 'exposure'> {
  /** The way to pods of the seed, where its Services cannot be reached. */
  dialPod: PodDialer | undefined;
  /** The pod of a member, by its ordinal. */
  podName: (ordinal: number) => string;
}

/** Opens the line to the etcd of a shoot, with a certificate of its own. To be closed. */
export async function openEtcd(place: EtcdPlace, pki: PKIData, now: Date): Promise<EtcdClient> {
  const { namespace, addresses, exposure = 'ClusterIP', dialPod, podName } = place;
  const certificate = await issueEtcdOperatorCertificate(pki, now);
  const urls = addresses.etcd.map((_, ordinal) => etcdClientURL(place, ordinal));
  const dial =
    dialPod && exposure !== 'ClusterIP'
      ? (host: string, port: number) => dialPod(namespace, podName(addresses.etcd.indexOf(host)), port)
      : undefined;
  return new EtcdClient(urls, { ca: keyPair(pki, 'ca-etcd').cert, ...certificate }, dial);
}
