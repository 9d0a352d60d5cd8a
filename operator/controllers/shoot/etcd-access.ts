import { EtcdClient } from '../../etcd/etcd-client.ts';
import { type PodDialer, podDialer } from '../../kube/pod-tunnel.ts';
import { operatorKubeconfig } from '../../shoot/kubeconfigs.ts';
import { issueEtcdOperatorCertificate, issueOperatorCertificate, keyPair, type PKIData } from '../../shoot/pki.ts';
import { type ControlPlane, ETCD_CLIENT_PORT, etcdClientURL } from '../../shoot/values.ts';

/** What kubeadm calls etcd's pod, before the name of its node. */
const STATIC_ETCD = 'etcd';

/** Where the etcd of a shoot is. */
interface EtcdPlace extends Pick<ControlPlane, 'namespace' | 'addresses' | 'exposure'> {
  /** The way to pods of the seed, where its Services cannot be reached. */
  dialPod: PodDialer | undefined;
  /** The pod of a member, by its ordinal. */
  podName: (ordinal: number) => string;
  /** Of members that have a gateway of their own. */
  gatewayPort?: number;
}

/** Opens the connection to the etcd of a shoot, with a certificate of its own. To be closed. */
export async function openEtcd(place: EtcdPlace, pki: PKIData, now: Date): Promise<EtcdClient> {
  const { namespace, addresses, exposure = 'ClusterIP', dialPod, podName, gatewayPort } = place;
  const certificate = await issueEtcdOperatorCertificate(pki, now);
  const urls = addresses.etcd.map((_, ordinal) => etcdClientURL(place, ordinal));
  const dial =
    dialPod && exposure !== 'ClusterIP'
      ? (host: string, port: number) => dialPod(namespace, podName(addresses.etcd.indexOf(host)), port)
      : undefined;
  return new EtcdClient(urls, { ca: keyPair(pki, 'ca-etcd').cert, ...certificate }, { dial, gatewayPort });
}

/**
 * The same for an etcd on machines of a cloud, which are reached through the cluster's own API server.
 * @param places machines that have joined
 */
export async function openStackedEtcd(
  values: ControlPlane,
  places: readonly { node: string; address: string }[],
  pki: PKIData,
  now: Date,
): Promise<EtcdClient> {
  const admin = operatorKubeconfig(values, pki, await issueOperatorCertificate(pki, now));
  const dialPod = podDialer(admin);
  const urls = places.map(({ address }) => `https://${address}:${ETCD_CLIENT_PORT}`);
  const certificate = await issueEtcdOperatorCertificate(pki, now);
  const dial = async (host: string, port: number) => {
    const place = places.find(({ address }) => address === host);
    if (!place) throw new Error(`no machine of the control plane has joined at ${host}`);
    return dialPod('kube-system', `${STATIC_ETCD}-${place.node}`, port);
  };
  return new EtcdClient(urls, { ca: keyPair(pki, 'ca-etcd').cert, ...certificate }, { dial });
}
