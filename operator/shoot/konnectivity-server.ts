import type { KubeObject } from '../api/meta.ts';
import { COMPONENTS } from '../api/names.ts';
import { clientKubeconfig } from './kubeconfigs.ts';
import { KONNECTIVITY_SERVER_USER, keyPair, type PKIData } from './pki.ts';
import { componentSecret, httpProbe, type Sidecar } from './pod.ts';
import { API_SERVER_PORT, type ControlPlane, KONNECTIVITY_PORT } from './values.ts';
import { konnectivityImage } from './versions.ts';

/** Audience of the agents' tokens: a token for the API server opens no tunnel, and a tunnel token no API server. */
export const KONNECTIVITY_AUDIENCE = 'system:konnectivity-server';
/** ServiceAccount (in kube-system) and Deployment of the agents. */
export const KONNECTIVITY_AGENT = 'konnectivity-agent';

const CONFIG = '/etc/konnectivity';
const SOCKETS = '/run/konnectivity';
const SOCKET = `${SOCKETS}/server.sock`;
const ADMIN_PORT = 8133;
const HEALTH_PORT = 8134;
/** Shared by the two containers of the API server's pod. */
const SOCKET_VOLUME = 'konnectivity';

/** The tunnel's parts in the API server's own container: the flag, and the folder with the socket. */
export const egress = {
  file: 'egress-selector.json',
  argument: (directory: string): string => `--egress-selector-config-file=${directory}/egress-selector.json`,
  mount: { name: SOCKET_VOLUME, mountPath: SOCKETS },
  volume: { name: SOCKET_VOLUME, emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
} as const;

/**
 * Kubelets, pods, Services and webhooks, also those with a URL, are reached through the tunnel: this is the meaning of
 * `controlplane`; without it a tenant's webhook could make the API server send requests into the seed's network. etcd
 * and the API server itself are reached directly.
 */
export const EGRESS_SELECTOR: string = egressSelector('GRPC', SOCKET);

/** API server configuration that sends all traffic to the cluster or to URLs through the proxy on the socket. */
export function egressSelector(proxyProtocol: 'GRPC' | 'HTTPConnect', udsName: string): string {
  return JSON.stringify({
    apiVersion: 'apiserver.k8s.io/v1beta1',
    kind: 'EgressSelectorConfiguration',
    egressSelections: ['cluster', 'controlplane'].map((name) => ({
      name,
      connection: { proxyProtocol, transport: { uds: { udsName } } },
    })),
  });
}

/** The same without a proxy: connections use the network of the API server's pod. */
export const withoutProxy: string = JSON.stringify({
  apiVersion: 'apiserver.k8s.io/v1beta1',
  kind: 'EgressSelectorConfiguration',
  egressSelections: [],
});

/** Files of the server in a Secret of its own: it sees no key of the API server. */
export function konnectivityServerFiles(values: ControlPlane, pki: PKIData): Record<string, string> {
  const pair = keyPair(pki, 'konnectivity-server');
  const beside = `https://127.0.0.1:${API_SERVER_PORT}`;
  return {
    'tls.crt': pair.cert,
    'tls.key': pair.key,
    kubeconfig: clientKubeconfig(values, pki, pair, KONNECTIVITY_SERVER_USER, beside),
  };
}

/** Secret of these files. */
export const konnectivityServerSecret = (values: ControlPlane, files: Record<string, string>): KubeObject =>
  componentSecret(values, COMPONENTS.konnectivityServer, files);

/** The server: a container in each pod of the API server, to which the cluster's agents connect. */
export function konnectivityServer(values: ControlPlane): Sidecar[] {
  return [
    {
      name: COMPONENTS.konnectivityServer,
      image: konnectivityImage('proxy-server'),
      command: '/proxy-server',
      args: konnectivityServerArguments(values),
      ports: [
        { name: 'konnectivity', containerPort: KONNECTIVITY_PORT },
        { name: 'tunnel-health', containerPort: HEALTH_PORT },
      ],
      // Its /readyz requires an agent, and agents only connect to a ready API server.
      probes: { livenessProbe: httpProbe('/healthz', 'tunnel-health', { period: 10, failures: 6 }) },
      mountPath: CONFIG,
      mounts: [egress.mount],
    },
  ];
}

function konnectivityServerArguments(values: ControlPlane, directory = CONFIG): string[] {
  const file = (name: string) => `${directory}/${name}`;
  return [
    '--mode=grpc',
    `--uds-name=${SOCKET}`,
    '--server-port=0',
    `--agent-port=${KONNECTIVITY_PORT}`,
    `--admin-port=${ADMIN_PORT}`,
    `--health-port=${HEALTH_PORT}`,
    `--cluster-cert=${file('tls.crt')}`,
    `--cluster-key=${file('tls.key')}`,
    `--kubeconfig=${file('kubeconfig')}`,
    '--agent-namespace=kube-system',
    `--agent-service-account=${KONNECTIVITY_AGENT}`,
    `--authentication-audience=${KONNECTIVITY_AUDIENCE}`,
    `--server-count=${serverCount(values)}`,
    // Load balancers silently drop connections idle for some minutes.
    '--keepalive-time=60s',
    '--v=1',
  ];
}

/**
 * Number of servers an agent connects to: the number of API servers once all of them know all etcd members. Not
 * `replicas`, which changes earlier: a new size would then roll the API servers twice instead of once.
 */
export const serverCount = ({ etcd }: Pick<ControlPlane, 'etcd'>): number => etcd.endpoints.length;
