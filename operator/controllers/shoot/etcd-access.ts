import { EtcdClient } from '../../etcd/etcd-client.ts';
import { type PodDialer, podDialer } from '../../kube/pod-tunnel.ts';
import { operatorKubeconfig } from '../../shoot/kubeconfigs.ts';
import { issueEtcdOperatorCertificate, issueOperatorCertificate, keyPair, type PKIData } from '../../shoot/pki.ts';
import { type ControlPlane, ETCD_CLIENT_PORT, etcdClientURL } from '../../shoot/values.ts';

/** kubeadm's name prefix of etcd's static pod. */
const STATIC_ETCD = 'etcd';

/** Location of a shoot's etcd. */
interface EtcdPlace extends Pick<ControlPlane, 'namespace' | 'addresses' | 'exposure'> {
  /** Dialer for pods of the seed, when its Services cannot be reached. */
  dialPod: PodDialer | undefined;
  /** Pod of a member, by ordinal. */
  podName: (ordinal: number) => string;
  /** Port of members behind a gateway of their own. */
  gatewayPort?: number;
}

/** Opens a connection to a shoot's etcd with its own client certificate. The caller closes it. */
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
 * Opens a connection to an etcd on machines in a cloud, through the cluster's own API server.
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
