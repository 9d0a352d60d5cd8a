import { request } from 'node:https';
import { connect } from 'node:net';
import { readText, writeIfChanged } from '../host/files.ts';
import type { ProcessSpec } from '../processes/supervisor.ts';
import type { GardenState, StateDirectory } from '../state/state.ts';
import { IDLE_CONTROLLERS } from './idle-controllers.ts';
import { ENCRYPTION_CONFIGURATION } from './secrets-encryption.ts';

/** Anonymous requests may read health endpoints only. */
const AUTHENTICATION = {
  apiVersion: 'apiserver.config.k8s.io/v1',
  kind: 'AuthenticationConfiguration',
  anonymous: { enabled: true, conditions: [{ path: '/livez' }, { path: '/readyz' }, { path: '/healthz' }] },
};

/** The host has no route to kubelets and Services of a rootless seed. */
const throughSocket = (socket: string) => ({
  apiVersion: 'apiserver.k8s.io/v1beta1',
  kind: 'EgressSelectorConfiguration',
  egressSelections: [
    {
      name: 'cluster',
      connection: { proxyProtocol: 'HTTPConnect', transport: { uds: { udsName: socket } } },
    },
  ],
});

/**
 * For processes with little work: less garbage in memory for slightly more CPU. Too costly for the API server
 * (docs/seen/benchmarks.md).
 */
const LITTLE_GARBAGE = { GOGC: '50' };

/** Whether something accepts connections on a port of 127.0.0.1. */
const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('close', () => resolve(false));
    socket.setTimeout(1000, () => socket.destroy());
    socket.once('connect', () => socket.destroy());
  });

/** Whether the API server at a port of 127.0.0.1, with a certificate signed by `ca` (PEM), reports readiness. */
export const isApiserverReady = (port: number, ca: string): Promise<boolean> =>
  new Promise((resolve) => {
    const asked = request({ host: '127.0.0.1', port, path: '/readyz', ca, agent: false, timeout: 2000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    asked.on('error', () => resolve(false));
    asked.on('timeout', () => asked.destroy());
    asked.end();
  });

/** etcd with fsync: it acknowledges only durable writes. */
export function etcdProcess(directory: StateDirectory, state: GardenState, file: string): ProcessSpec {
  const client = `https://127.0.0.1:${state.ports.etcd}`;
  const peer = `https://127.0.0.1:${state.ports.etcdPeer}`;
  const pki = (name: string) => directory.pki(name);
  return {
    name: 'etcd',
    command: [
      file,
      '--name=garden',
      `--data-dir=${directory.path('etcd')}`,
      `--listen-client-urls=${client}`,
      `--advertise-client-urls=${client}`,
      // No client uses JSON here, and serving gRPC on the same port costs API servers more: JSON gets an arbitrary
      // free port.
      '--listen-client-http-urls=https://127.0.0.1:0',
      `--listen-peer-urls=${peer}`,
      `--initial-advertise-peer-urls=${peer}`,
      `--initial-cluster=garden=${peer}`,
      '--client-cert-auth',
      `--trusted-ca-file=${pki('etcd-ca.crt')}`,
      `--cert-file=${pki('etcd.crt')}`,
      `--key-file=${pki('etcd.key')}`,
      '--peer-client-cert-auth',
      `--peer-trusted-ca-file=${pki('etcd-ca.crt')}`,
      `--peer-cert-file=${pki('etcd.crt')}`,
      `--peer-key-file=${pki('etcd.key')}`,
      `--quota-backend-bytes=${8 * 1024 ** 3}`,
      '--log-level=warn',
    ],
    inputs: [pki('etcd-ca.crt')],
    ready: () => accepts(state.ports.etcd),
    graceMs: 5_000,
  };
}

/** The garden's API server, on the loopback only. */
export async function apiServerProcess(
  directory: StateDirectory,
  state: GardenState,
  file: string,
): Promise<ProcessSpec> {
  const { ports, ranges } = state;
  const pki = (name: string) => directory.pki(name);
  const authentication = directory.config('authentication.json');
  await writeIfChanged(authentication, JSON.stringify(AUTHENTICATION));
  const egress = state.rootless ? directory.config('egress.json') : undefined;
  if (egress) await writeIfChanged(egress, JSON.stringify(throughSocket(directory.seedSocket)));
  return {
    name: 'kube-apiserver',
    command: [
      file,
      ...(egress ? [`--egress-selector-config-file=${egress}`] : []),
      '--bind-address=127.0.0.1',
      `--secure-port=${ports.apiserver}`,
      // Address for pods of the seed: the daemon listens there and forwards.
      `--advertise-address=${ranges.nodeAddress}`,
      `--service-cluster-ip-range=${ranges.services}`,
      `--etcd-servers=https://127.0.0.1:${ports.etcd}`,
      `--etcd-cafile=${pki('etcd-ca.crt')}`,
      `--etcd-certfile=${pki('apiserver-etcd-client.crt')}`,
      `--etcd-keyfile=${pki('apiserver-etcd-client.key')}`,
      `--tls-cert-file=${pki('apiserver.crt')}`,
      `--tls-private-key-file=${pki('apiserver.key')}`,
      `--client-ca-file=${pki('ca.crt')}`,
      `--authentication-config=${authentication}`,
      `--encryption-provider-config=${pki(ENCRYPTION_CONFIGURATION)}`,
      '--authorization-mode=Node,RBAC',
      // kube-proxy of the seed honours a Service's externalIPs without checking them: a tenant's could capture
      // control planes' traffic.
      '--enable-admission-plugins=NodeRestriction,DenyServiceExternalIPs',
      '--allow-privileged=true',
      '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
      `--service-account-key-file=${pki('service-account.pub')}`,
      `--service-account-signing-key-file=${pki('service-account.key')}`,
      `--kubelet-certificate-authority=${pki('ca.crt')}`,
      `--kubelet-client-certificate=${pki('apiserver-kubelet-client.crt')}`,
      `--kubelet-client-key=${pki('apiserver-kubelet-client.key')}`,
      '--kubelet-preferred-address-types=InternalIP',
      '--max-requests-inflight=1600',
      '--max-mutating-requests-inflight=800',
      '--profiling=false',
      '--v=1',
    ],
    inputs: [
      'apiserver-etcd-client.crt',
      'apiserver-kubelet-client.crt',
      'service-account.pub',
      ENCRYPTION_CONFIGURATION,
    ].map(pki),
    ready: async () => isApiserverReady(ports.apiserver, (await readText(pki('ca.crt'))) ?? ''),
    graceMs: 4_000,
  };
}

export function controllerManager(directory: StateDirectory, state: GardenState, file: string): ProcessSpec {
  return {
    name: 'kube-controller-manager',
    command: [
      file,
      `--kubeconfig=${directory.kubeconfigFile('kube-controller-manager')}`,
      '--leader-elect=false',
      '--secure-port=0',
      '--use-service-account-credentials',
      `--service-account-private-key-file=${directory.pki('service-account.key')}`,
      `--root-ca-file=${directory.pki('ca.crt')}`,
      `--service-cluster-ip-range=${state.ranges.services}`,
      `--controllers=*,${IDLE_CONTROLLERS.map((name) => `-${name}`).join(',')}`,
      '--concurrent-deployment-syncs=20',
      '--concurrent-replicaset-syncs=20',
      '--concurrent-statefulset-syncs=20',
      '--concurrent-service-endpoint-syncs=20',
      '--concurrent-namespace-syncs=50',
      '--kube-api-qps=500',
      '--kube-api-burst=1000',
      '--profiling=false',
    ],
    env: LITTLE_GARBAGE,
    inputs: [directory.kubeconfigFile('kube-controller-manager'), directory.pki('service-account.key')],
  };
}

export function schedulerProcess(directory: StateDirectory, file: string): ProcessSpec {
  return {
    name: 'kube-scheduler',
    command: [
      file,
      `--kubeconfig=${directory.kubeconfigFile('kube-scheduler')}`,
      '--leader-elect=false',
      '--secure-port=0',
      '--kube-api-qps=500',
      '--kube-api-burst=1000',
      '--profiling=false',
    ],
    env: LITTLE_GARBAGE,
    inputs: [directory.kubeconfigFile('kube-scheduler')],
  };
}
