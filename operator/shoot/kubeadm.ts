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

/** Placeholders in kubeadm's configuration for the machine's name and permanent address. */
const NODE_NAME = '@NODE_NAME@';
const ADDRESS = '@ADDRESS@';
/** Path of the kubeconfig with which a machine finds the cluster it joins. */
const DISCOVERY_KUBECONFIG = '/run/kubeadm/super-admin.conf';

const API_VERSION = 'kubeadm.k8s.io/v1beta4';
const PKI = '/etc/kubernetes/pki';
const ANY = '0.0.0.0';
const CERTIFICATES_LAST = `${LEAF_DAYS * 24}h`;

type KubeadmValues = Pick<ControlPlane, 'addresses' | 'endpoint' | 'networks' | 'shoot' | 'version'>;

/** Location of control plane machines: in the seed, with permanent addresses, or in a cloud, each with its own. */
type ControlPlanePlace = 'seed' | 'cloud';

/** kubeadm's configuration documents as YAML. */
export const kubeadmYAML = (...documents: readonly object[]): string =>
  documents.map((document) => dump(document, { lineWidth: -1, noRefs: true })).join('---\n');

/**
 * kubeadm's documents for the first machine. Fields: kubernetes.io/docs/reference/config-api/kubeadm-config.v1beta4.
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

/** kubeadm's document for a joining machine of the seed; the cluster's configuration is read from the cluster. */
export const kubeadmJoin = (): object => joinConfiguration(DISCOVERY_KUBECONFIG);

/**
 * The same for a cloud machine, which has no keys and reads them from the cluster.
 * @param kubeConfigPath of a kubeconfig with a bootstrap token
 * @param certificateKey see joinObjects
 */
export const kubeadmJoinByToken = (kubeConfigPath: string, certificateKey: string): object => ({
  ...joinConfiguration(kubeConfigPath, certificateKey),
  timeouts: CLOUD_TIMEOUTS,
});

/** Images are pulled from the internet, and a load balancer needs time to detect healthy machines. */
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

/** The cluster's CAs in kubeadm's layout, by path below /etc/kubernetes/pki. */
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
 * Files that Coppice gives to control plane machines below /etc/kubernetes/pki, by path: the CAs, and the encryption
 * keys where Secrets are encrypted. The API server needs no further volume: kubeadm mounts that folder.
 */
export const kubeadmKeys = (pki: PKIData): Record<string, string> => ({
  ...kubeadmAuthorities(pki),
  ...encryptionParts(pki, PKI).files,
});

/** ConfigMap that a joining machine reads first; public, as kubeadm's phase bootstrap-token writes it. */
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

/**
 * kubeadm's ConfigMap with the cluster's configuration, above all its version. As kubeadm's phase upload-config writes
 * it.
 */
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
    // Machines of the seed add it themselves: earlier versions read this ConfigMap too, and renew certificates only
    // after 90 days.
    ...(place === 'cloud' && { certificateValidityPeriod: CERTIFICATES_LAST }),
    kubernetesVersion: `v${version}`,
    certificatesDir: PKI,
    // Same as all of Coppice's keys; RSA keys would cost each machine a second of CPU.
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
  // A machine's permanent address is forwarded to a changing one: it must listen on both.
  'listen-client-urls': `https://${ANY}:${ETCD_CLIENT_PORT}`,
  'listen-peer-urls': `https://${ANY}:${ETCD_PEER_PORT}`,
  // For that reason peers do not connect from the addresses in their certificates.
  'peer-skip-client-san-verification': 'true',
};

/**
 * kubeadm before 1.36 creates this folder, by default below /usr, which is the host's and read-only in a machine of the
 * seed: the controller manager would never start.
 */
const VOLUME_PLUGINS: Readonly<Record<string, Record<string, string>>> = {
  '1.35': { 'flex-volume-plugin-dir': '/var/lib/kubelet/volume-plugins' },
};

const minorOf = (version: string): string => version.split('.', 2).join('.');

const args = (values: Record<string, string>) => Object.entries(values).map(([name, value]) => ({ name, value }));
