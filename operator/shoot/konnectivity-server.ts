import type { KubeObject } from '../api/meta.ts';
import { COMPONENTS } from '../api/names.ts';
import { clientKubeconfig } from './kubeconfigs.ts';
import { KONNECTIVITY_SERVER_USER, keyPair, type PKIData } from './pki.ts';
import { componentSecret, httpProbe, type Sidecar } from './pod.ts';
import { API_SERVER_PORT, type ControlPlane, KONNECTIVITY_PORT } from './values.ts';
import { konnectivityImage } from './versions.ts';

/** What agents' tokens are for: one that is for the API server opens no tunnel, and one of a tunnel no API server. */
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

/** What the API server's own container has of the tunnel: the flag, and the folder with the socket. */
export const egress = {
  file: 'egress-selector.json',
  argument: (directory: string): string => `--egress-selector-config-file=${directory}/egress-selector.json`,
  mount: { name: SOCKET_VOLUME, mountPath: SOCKETS },
  volume: { name: SOCKET_VOLUME, emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
} as const;

/**
 * Kubelets, pods, Services and webhooks are reached through the tunnel, those at a URL as well: that is what `controlplane` stands for, and
 * without it a tenant's webhook could have the API server ask what is in the seed's network. etcd, and the API server itself, are where
 * they were.
 */
export const EGRESS_SELECTOR: string = egressSelector('GRPC', SOCKET);

/** The API server's configuration with which it asks whoever serves the socket for all that is in the cluster or at a URL. */
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

/** The same where nobody is asked: all is dialled as the network of the API server's pod leads it. */
export const withoutProxy: string = JSON.stringify({
  apiVersion: 'apiserver.k8s.io/v1beta1',
  kind: 'EgressSelectorConfiguration',
  egressSelections: [],
});

/** The files of the server, in a Secret of its own: it sees no key of the API server's. */
export function konnectivityServerFiles(values: ControlPlane, pki: PKIData): Record<string, string> {
  const pair = keyPair(pki, 'konnectivity-server');
  const beside = `https://127.0.0.1:${API_SERVER_PORT}`;
  return {
    'tls.crt': pair.cert,
    'tls.key': pair.key,
    kubeconfig: clientKubeconfig(values, pki, pair, KONNECTIVITY_SERVER_USER, beside),
  };
}

/** The Secret with them. */
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
      // Its /readyz would ask for an agent, and agents come only to an API server that is ready.
      probes: { livenessProbe: httpProbe('/healthz', 'tunnel-health', { period: 10, failures: 6 }) },
      mountPath: CONFIG,
      mounts: [egress.mount],
    },
  ];
}

/** The command line of the server. */
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
    // A load balancer forgets connections that are silent for some minutes, and tells nobody.
    '--keepalive-time=60s',
    '--v=1',
  ];
}

/**
 * How many servers an agent is to connect to: as many as API servers there are once all of them know all of etcd. Not `replicas`, which
 * changes before: a new size would then roll the API servers twice, and it does so once, at its end, for etcd's sake.
 */
export const serverCount = ({ etcd }: Pick<ControlPlane, 'etcd'>): number => etcd.endpoints.length;
