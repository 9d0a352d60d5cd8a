import { isIP } from 'node:net';
import { dump } from 'js-yaml';
import type { KubeObject } from '../api/meta.ts';
import { LEAF_DAYS } from '../pki/certificates.ts';
import { writeKubeconfigText } from '../pki/kubeconfig.ts';
import { nodeMaskSize } from './kube-controller-manager.ts';
import { keyPair, type PKIData } from './pki.ts';
import { encryptionParts } from './secrets-encryption.ts';
import {
  API_SERVER_PORT,
  apiServerURL,
  CLUSTER_DOMAIN,
  type ControlPlane,
  ETCD_CLIENT_PORT,
  ETCD_PEER_PORT,
} from './values.ts';
import { ETCD_VERSION } from './versions.ts';

/** Stand in kubeadm's configuration for the name and the lasting address of the machine that reads it. */
const NODE_NAME = '@NODE_NAME@';
const ADDRESS = '@ADDRESS@';
/** Where a machine puts the kubeconfig by which it finds the cluster that it joins. */
const DISCOVERY_KUBECONFIG = '/run/kubeadm/super-admin.conf';

const API_VERSION = 'kubeadm.k8s.io/v1beta4';
const PKI = '/etc/kubernetes/pki';
const ANY = '0.0.0.0';
const CERTIFICATES_LAST = `${LEAF_DAYS * 24}h`;

type KubeadmValues = Pick<ControlPlane, 'addresses' | 'endpoint' | 'networks' | 'shoot' | 'version'>;

/** Where machines of a control plane are: in the seed, at addresses that outlive them, or in a cloud, each at its own. */
export type ControlPlanePlace = 'seed' | 'cloud';

/** What kubeadm is given: its documents as YAML. */
export const kubeadmYAML = (...documents: readonly object[]): string =>
  documents.map((document) => dump(document, { lineWidth: -1, noRefs: true })).join('---\n');

/**
 * kubeadm's documents for the machine that begins the cluster. Field by field:
 * kubernetes.io/docs/reference/config-api/kubeadm-config.v1beta4.
 */
export const kubeadmInit = (values: KubeadmValues, pki: PKIData, place: ControlPlanePlace = 'seed'): object[] => [
  {
    apiVersion: API_VERSION,
    kind: 'InitConfiguration',
    nodeRegistration: nodeRegistration(),
    localAPIEndpoint: { advertiseAddress: ADDRESS, bindPort: API_SERVER_PORT },
    ...(place === 'cloud' && { timeouts: CLOUD_TIMEOUTS }),
  },
  clusterConfiguration(values, pki, place),
];

/** kubeadm's document for a machine of the seed that joins; what the cluster is, it reads there. */
export const kubeadmJoin = (): object => joinConfiguration(DISCOVERY_KUBECONFIG);

/**
 * The same for a machine of a cloud, which has no keys: it takes them from the cluster.
 * @param kubeConfigPath of a kubeconfig with a bootstrap token
 * @param certificateKey see joinObjects
 */
export const kubeadmJoinByToken = (kubeConfigPath: string, certificateKey: string): object => ({
  ...joinConfiguration(kubeConfigPath, certificateKey),
  timeouts: CLOUD_TIMEOUTS,
});

/** Images come from the internet, and a load balancer takes some time to find out who serves. */
const CLOUD_TIMEOUTS = {
  controlPlaneComponentHealthCheck: '10m0s',
  kubernetesAPICall: '5m0s',
  etcdAPICall: '5m0s',
  tlsBootstrap: '10m0s',
  discovery: '10m0s',
};

const joinConfiguration = (kubeConfigPath: string, certificateKey?: string): object => ({
  apiVersion: API_VERSION,
  kind: 'JoinConfiguration',
  discovery: { file: { kubeConfigPath } },
  nodeRegistration: nodeRegistration(),
  controlPlane: {
    localAPIEndpoint: { advertiseAddress: ADDRESS, bindPort: API_SERVER_PORT },
    ...(certificateKey !== undefined && { certificateKey }),
  },
});

/** The authorities of the cluster as kubeadm wants to find them, by path below /etc/kubernetes/pki. */
export function kubeadmAuthorities(pki: PKIData): Record<string, string> {
  const ca = keyPair(pki, 'ca');
  const etcd = keyPair(pki, 'ca-etcd');
  const frontProxy = keyPair(pki, 'ca-front-proxy');
  return {
    'ca.crt': ca.cert,
    'ca.key': ca.key,
    'etcd/ca.crt': etcd.cert,
    'etcd/ca.key': etcd.key,
    'front-proxy-ca.crt': frontProxy.cert,
    'front-proxy-ca.key': frontProxy.key,
    'sa.pub': pki['sa.pub']!,
    'sa.key': pki['sa.key']!,
  };
}

/**
 * All that machines of a control plane have from us below /etc/kubernetes/pki, by path: the authorities, and the keys of Secrets, where
 * they are encrypted. The API server needs no volume for these: kubeadm has it see that folder.
 */
export const kubeadmKeys = (pki: PKIData): Record<string, string> => ({
  ...kubeadmAuthorities(pki),
  ...encryptionParts(pki, PKI).files,
});

/** What whoever joins looks for first; public, and as kubeadm's phase bootstrap-token writes it. */
export const clusterInfo = (values: Pick<ControlPlane, 'addresses' | 'shoot'>, pki: PKIData): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'cluster-info', namespace: 'kube-public' },
  data: {
    kubeconfig: writeKubeconfigText({
      server: apiServerURL(values),
      ca: keyPair(pki, 'ca').cert,
      name: values.shoot.name,
      user: '',
    }),
  },
});

/** What kubeadm reads on a machine that joins: what the cluster is, its version above all. As kubeadm's phase upload-config writes it. */
export const kubeadmConfig = (values: KubeadmValues, pki: PKIData, place: ControlPlanePlace = 'seed'): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'kubeadm-config', namespace: 'kube-system' },
  data: {
    ClusterConfiguration: kubeadmYAML({
      ...clusterConfiguration(values, pki, place),
      certificateValidityPeriod: CERTIFICATES_LAST,
    }),
  },
});

const nodeRegistration = () => ({
  name: NODE_NAME,
  criSocket: 'unix:///run/containerd/containerd.sock',
  imagePullPolicy: 'IfNotPresent',
});

function clusterConfiguration(
  { addresses, endpoint, networks, shoot, version }: KubeadmValues,
  pki: PKIData,
  place: ControlPlanePlace,
): object {
  const names = ['localhost', ...(endpoint && isIP(endpoint.host) === 0 ? [endpoint.host] : [])];
  const ips = [
    '127.0.0.1',
    ...(place === 'seed' ? [addresses.apiServer] : []),
    ...(endpoint && isIP(endpoint.host) !== 0 ? [endpoint.host] : []),
  ];
  return {
    apiVersion: API_VERSION,
    kind: 'ClusterConfiguration',
    clusterName: shoot.name,
    // Machines of the seed add it themselves: those of earlier versions read this too, and renew certificates only after 90 days.
    ...(place === 'cloud' && { certificateValidityPeriod: CERTIFICATES_LAST }),
    kubernetesVersion: `v${version}`,
    certificatesDir: PKI,
    // As all keys of ours; RSA keys would cost each machine a second of CPU.
    encryptionAlgorithm: 'ECDSA-P256',
    controlPlaneEndpoint: `${addresses.apiServer}:${API_SERVER_PORT}`,
    networking: { podSubnet: networks.pods, serviceSubnet: networks.services, dnsDomain: CLUSTER_DOMAIN },
    apiServer: {
      certSANs: [...names, ...ips],
      extraArgs: args({
        'kubelet-certificate-authority': `${PKI}/ca.crt`,
        profiling: 'false',
        ...encryptionParts(pki, PKI).flags,
      }),
    },
    controllerManager: {
      extraArgs: args({
        'cluster-signing-duration': CERTIFICATES_LAST,
        'node-cidr-mask-size': String(nodeMaskSize(networks.pods)),
        profiling: 'false',
        ...(place === 'seed' && VOLUME_PLUGINS[minorOf(version)]),
      }),
    },
    scheduler: { extraArgs: args({ profiling: 'false' }) },
    etcd: {
      local: {
        dataDir: '/var/lib/etcd',
        imageTag: `${ETCD_VERSION}-0`,
        extraArgs: args({
          ...(place === 'seed' && SEED_ETCD),
          'quota-backend-bytes': String(2 * 1024 ** 3),
        }),
      },
    },
  };
}

const SEED_ETCD = {
  // A machine is reached at its lasting address by way of one that changes: it has to listen on both.
  'listen-client-urls': `https://${ANY}:${ETCD_CLIENT_PORT}`,
  'listen-peer-urls': `https://${ANY}:${ETCD_PEER_PORT}`,
  // And for that reason peers do not come from the addresses in their certificates.
  'peer-skip-client-san-verification': 'true',
};

/**
 * kubeadm before 1.36 has this folder made, by default below /usr, which is the host's and read-only in a machine of the seed: the controller
 * manager would never start.
 */
const VOLUME_PLUGINS: Readonly<Record<string, Record<string, string>>> = {
  '1.35': { 'flex-volume-plugin-dir': '/var/lib/kubelet/volume-plugins' },
};

const minorOf = (version: string): string => version.split('.', 2).join('.');

const args = (values: Record<string, string>) => Object.entries(values).map(([name, value]) => ({ name, value }));
