import type { KubeObject } from '../api/meta.ts';
import { COMPONENTS } from '../api/names.ts';
import { auditParts } from './audit-log.ts';
import {
  EGRESS_SELECTOR,
  egress,
  egressSelector,
  konnectivityServer,
  konnectivityServerFiles,
  konnectivityServerSecret,
  withoutProxy,
} from './konnectivity-server.ts';
import { keyPair, type PKIData } from './pki.ts';
import { componentSecret, deploymentManifest, disruptionBudget, filesChecksum, httpProbe } from './pod.ts';
import { encryptionParts } from './secrets-encryption.ts';
import { API_SERVER_PORT, CLUSTER_DOMAIN, type ControlPlane, etcdClientURL, seedAddresses } from './values.ts';
import { kubernetesImage } from './versions.ts';

/** The API server's configuration for reaching machines and pods, where no tunnel is used. */
interface NetworkParts {
  arguments: string[];
  files: Record<string, string>;
  /** For the API server's pod. */
  pod: {
    first?: object[];
    env?: { name: string; valueFrom: unknown }[];
    mounts?: { name: string; mountPath: string; readOnly: boolean }[];
    volumes?: object[];
  };
}

/** Socket without a listener: requests for pods or kubelets fail with an error that contains this name. */
const NOBODY = '/no-pods-run-in-a-simulated-cluster';
const NOTHING: NetworkParts = { arguments: [], files: {}, pod: {} };

const VOLUME = 'network';
const FOLDER = '/network';
/** By the pod's address: a pod whose network was recreated must not start with the previous file. */
const EGRESS_FILE = `${FOLDER}/$(POD_IP)/${egress.file}`;
const POD_IP = { name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } };

/** @param directory the API server's directory of files */
function networkParts(values: ControlPlane, directory: string): NetworkParts {
  const { clusterNetwork } = values;
  if (!clusterNetwork) return NOTHING;
  // Refused by configuration, which needs no process: an address forged by a tenant would otherwise be one of the
  // seed.
  if (clusterNetwork === 'none')
    return {
      ...NOTHING,
      arguments: [egress.argument(directory)],
      files: { [egress.file]: egressSelector('HTTPConnect', NOBODY) },
    };
  const { container, volumes } = clusterNetwork;
  const more = [
    { name: 'SEED_ADDRESSES', value: seedAddresses(values).join(' ') },
    POD_IP,
    { name: 'EGRESS_FILE', value: EGRESS_FILE },
    { name: 'EGRESS', value: withoutProxy },
  ];
  const mount = { name: VOLUME, mountPath: FOLDER };
  return {
    files: {},
    arguments: [
      // Service addresses work on machines only: webhooks and aggregated APIs are dialled at their pods.
      '--enable-aggregator-routing=true',
      // The API server exits when the file is missing: otherwise it would dial through the seed's network before its
      // own is ready.
      `--egress-selector-config-file=${EGRESS_FILE}`,
    ],
    pod: {
      first: [{ ...container, env: [...container.env, ...more], volumeMounts: [...container.volumeMounts, mount] }],
      env: [POD_IP],
      mounts: [{ ...mount, readOnly: true }],
      volumes: [...volumes, { name: VOLUME, emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } }],
    },
  };
}

const CONFIG = '/etc/kubernetes';
/**
 * The Lease of each API server, and the proxy to API servers of a newer version, for which no CA exists here. A
 * terminating API server removes both from an etcd that may be terminating too, and would wait until it is killed.
 */
const UNUSED_FEATURES = ['APIServerIdentity', 'UnknownVersionInteroperabilityProxy'];

/**
 * The API server: one Secret with all its files, a Deployment, and a disruption budget when there are several. Where
 * machines are outside the seed, each pod also runs the tunnel's server, with its own Secret; elsewhere the provider
 * decides.
 */
export function kubeAPIServer(values: ControlPlane, pki: PKIData): KubeObject[] {
  const { machinesOutside } = values;
  const network = networkParts(values, CONFIG);
  const encryption = encryptionParts(pki, CONFIG);
  const audit = auditParts(values, CONFIG);
  const files = { ...apiServerFiles(values, pki), ...network.files, ...encryption.files, ...audit.files };
  const tunnelFiles = machinesOutside && konnectivityServerFiles(values, pki);
  const objects = [
    componentSecret(values, COMPONENTS.apiServer, files),
    ...(tunnelFiles ? [konnectivityServerSecret(values, tunnelFiles)] : []),
    deploymentManifest(
      values,
      {
        name: COMPONENTS.apiServer,
        image: kubernetesImage('kube-apiserver', values.version),
        args: [
          ...apiServerArguments(values),
          ...network.arguments,
          ...asArguments({ ...encryption.flags, ...audit.flags }),
        ],
        ports: [{ name: 'https', containerPort: API_SERVER_PORT }],
        probes: {
          startupProbe: httpProbe('/readyz', 'https', { scheme: 'HTTPS', period: 1, failures: 300 }),
          readinessProbe: httpProbe('/readyz', 'https', { scheme: 'HTTPS', period: 5, failures: 2 }),
          livenessProbe: httpProbe('/livez?exclude=etcd', 'https', { scheme: 'HTTPS', period: 10, failures: 6 }),
        },
        mountPath: CONFIG,
        ...network.pod,
        env: [{ name: 'GOGC', value: '50' }, ...(network.pod.env ?? [])],
        ...(machinesOutside && {
          mounts: [egress.mount],
          volumes: [egress.volume],
          sidecars: konnectivityServer(values),
        }),
        checksum: filesChecksum(tunnelFiles ? { ...files, ...withPrefix('tunnel/', tunnelFiles) } : files),
        gracePeriodSeconds: 10,
        spread: values.replicas > 1,
      },
      {
        replicas: values.replicas,
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      },
    ),
  ];
  if (values.replicas > 1) objects.push(disruptionBudget(values, COMPONENTS.apiServer));
  return objects;
}

export function apiServerArguments(values: ControlPlane, directory = CONFIG): string[] {
  const file = (name: string) => `${directory}/${name}`;
  return [
    `--secure-port=${API_SERVER_PORT}`,
    `--advertise-address=${values.addresses.apiServer}`,
    `--tls-cert-file=${file('tls.crt')}`,
    `--tls-private-key-file=${file('tls.key')}`,
    '--tls-min-version=VersionTLS12',
    `--etcd-servers=${values.etcd.endpoints.map((ordinal) => etcdClientURL(values, ordinal)).join(',')}`,
    `--etcd-cafile=${file('etcd-ca.crt')}`,
    `--etcd-certfile=${file('etcd-client.crt')}`,
    `--etcd-keyfile=${file('etcd-client.key')}`,
    `--service-cluster-ip-range=${values.networks.services}`,
    // All replicas share one address, published by systemComponents. The API server's own reconciler would remove it
    // whenever a replica stops.
    '--endpoint-reconciler-type=none',
    `--authentication-config=${file('authentication.json')}`,
    `--client-ca-file=${file('ca.crt')}`,
    '--enable-bootstrap-token-auth=true',
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    '--allow-privileged=true',
    `--service-account-issuer=https://kubernetes.default.svc.${CLUSTER_DOMAIN}`,
    `--service-account-key-file=${file('sa.pub')}`,
    `--service-account-signing-key-file=${file('sa.key')}`,
    `--kubelet-client-certificate=${file('kubelet-client.crt')}`,
    `--kubelet-client-key=${file('kubelet-client.key')}`,
    `--kubelet-certificate-authority=${file('ca.crt')}`,
    '--kubelet-preferred-address-types=InternalIP,Hostname',
    `--requestheader-client-ca-file=${file('front-proxy-ca.crt')}`,
    '--requestheader-allowed-names=front-proxy-client',
    '--requestheader-username-headers=X-Remote-User',
    '--requestheader-group-headers=X-Remote-Group',
    '--requestheader-extra-headers-prefix=X-Remote-Extra-',
    `--proxy-client-cert-file=${file('front-proxy-client.crt')}`,
    `--proxy-client-key-file=${file('front-proxy-client.key')}`,
    '--profiling=false',
    // Watches are closed at termination: with one open the API server would wait until it is killed.
    '--shutdown-watch-termination-grace-period=1s',
    `--feature-gates=${UNUSED_FEATURES.map((name) => `${name}=false`).join(',')}`,
    // Both only feed metrics, by counting every key repeatedly.
    '--etcd-count-metric-poll-period=0',
    '--etcd-db-metric-poll-interval=0',
    ...(values.machinesOutside ? [egress.argument(directory)] : []),
  ];
}

const asArguments = (flags: Record<string, string>): string[] =>
  Object.entries(flags).map(([name, value]) => `--${name}=${value}`);

const withPrefix = (prefix: string, files: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(files).map(([name, text]) => [`${prefix}${name}`, text]));

/** Files named by apiServerArguments. */
function apiServerFiles(values: Pick<ControlPlane, 'machinesOutside'>, pki: PKIData): Record<string, string> {
  const serving = keyPair(pki, 'kube-apiserver');
  const etcd = keyPair(pki, 'etcd-client');
  const kubelet = keyPair(pki, 'kubelet-client');
  const frontProxy = keyPair(pki, 'front-proxy-client');
  return {
    'ca.crt': keyPair(pki, 'ca').cert,
    'tls.crt': serving.cert,
    'tls.key': serving.key,
    'etcd-ca.crt': keyPair(pki, 'ca-etcd').cert,
    'etcd-client.crt': etcd.cert,
    'etcd-client.key': etcd.key,
    'kubelet-client.crt': kubelet.cert,
    'kubelet-client.key': kubelet.key,
    'front-proxy-ca.crt': keyPair(pki, 'ca-front-proxy').cert,
    'front-proxy-client.crt': frontProxy.cert,
    'front-proxy-client.key': frontProxy.key,
    'sa.pub': pki['sa.pub']!,
    'sa.key': pki['sa.key']!,
    'authentication.json': JSON.stringify(AUTHENTICATION),
    ...(values.machinesOutside && { [egress.file]: EGRESS_SELECTOR }),
  };
}

const AUTHENTICATION = {
  apiVersion: 'apiserver.config.k8s.io/v1',
  kind: 'AuthenticationConfiguration',
  anonymous: { enabled: true, conditions: [{ path: '/livez' }, { path: '/readyz' }, { path: '/healthz' }] },
};
