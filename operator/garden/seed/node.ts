import { delimiter, dirname } from 'node:path';
import { type ImageMirror, mirrorHosts } from '../../../providers/local/mirror-hosts.ts';
import { NODE_NAME } from '../control-plane/certificates.ts';
import { run } from '../host/command.ts';
import { readText, writeIfChanged } from '../host/files.ts';
import { SEED_PATHS } from '../host/mounts.ts';
import { POD_BRIDGE } from '../host/network.ts';
import { SYSTEM_PATH } from '../processes/child-environment.ts';
import type { ProcessSpec } from '../processes/supervisor.ts';
import type { GardenState, StateDirectory } from '../state/state.ts';
import { isBuilt } from '../toolchain/tools.ts';
import { containerdConfig, runcAsOneUser } from './containerd-config.ts';

/** Tools of a seed's node. */
export const NODE_TOOLS = [
  'containerd',
  'containerd-shim-runc-v2',
  'ctr',
  'runc',
  'bridge',
  'host-local',
  'loopback',
  'iptables',
  'conntrack',
  'mount',
] as const;
/** Tools that are not compiled: missing ones are known within seconds. */
export const INSTALLED_TOOLS = NODE_TOOLS.filter((name) => !isBuilt(name));
type NodeTool = (typeof NODE_TOOLS)[number] | 'kubelet' | 'kube-proxy';

export interface NodeContext {
  directory: StateDirectory;
  state: GardenState;
  /** Command prefix that enters the seed's namespaces. */
  enter: readonly string[];
  /** Cgroup of the garden, parent of the pods' cgroups. Undefined: a rootless seed, whose pods have none. */
  cgroup: string | undefined;
  files: Record<NodeTool, string>;
  pauseImage: string;
  /** The garden's image mirror, if any. */
  imageMirror?: ImageMirror;
}

/** Host path of a configuration file; the folder is SEED_PATHS.config in the seed. */
const configFile = (directory: StateDirectory, ...parts: string[]): string =>
  directory.path('seed', 'config', ...parts);

/** containerd finds runc and its shim by PATH, kubelet and kube-proxy find mount and iptables. */
const environment = ({ files }: NodeContext): Record<string, string> => ({
  PATH: [...new Set([...Object.values(files).map((file) => dirname(file)), ...SYSTEM_PATH.split(delimiter)])].join(
    delimiter,
  ),
  HOME: '/root',
  LANG: 'C.UTF-8',
});

const CAP_SYS_RESOURCE = 24n;

/** Whether this process may lower a process's OOM score. */
async function canLowerOomScore(): Promise<boolean> {
  const effective = /^CapEff:\s*([0-9a-f]+)/m.exec((await readText('/proc/self/status')) ?? '')?.[1];
  return effective !== undefined && ((BigInt(`0x${effective}`) >> CAP_SYS_RESOURCE) & 1n) === 1n;
}

/**
 * The seed's pod network: one bridge, so that pods (and machines) share a layer 2. Without portmap: a tenant's pod with
 * hostPort 5000 or 10250 would capture the traffic of the image mirror or kubelet.
 */
export const cniConfig = (pods: string): object => ({
  cniVersion: '0.4.0',
  name: 'coppice',
  plugins: [
    {
      type: 'bridge',
      bridge: POD_BRIDGE,
      isDefaultGateway: true,
      hairpinMode: true,
      ipMasq: false,
      ipam: { type: 'host-local', dataDir: SEED_PATHS.addresses, ranges: [[{ subnet: pods }]] },
    },
  ],
});

export function kubeletConfig(options: {
  nodeAddress: string;
  /** Undefined: pods get none, as in a rootless seed. */
  cgroup: string | undefined;
  pki: (name: string) => string;
  resolvConf: string;
}): object {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    address: options.nodeAddress,
    healthzPort: 0,
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: options.pki('ca.crt') },
    },
    authorization: { mode: 'Webhook' },
    tlsCertFile: options.pki('kubelet-server.crt'),
    tlsPrivateKeyFile: options.pki('kubelet-server.key'),
    containerRuntimeEndpoint: `unix://${SEED_PATHS.socket}`,
    cgroupDriver: 'cgroupfs',
    ...(options.cgroup === undefined
      ? { cgroupsPerQOS: false, featureGates: { KubeletInUserNamespace: true }, localStorageCapacityIsolation: false }
      : { cgroupRoot: `/${options.cgroup}` }),
    failCgroupV1: false,
    failSwapOn: false,
    oomScoreAdj: 0,
    resolvConf: options.resolvConf,
    maxPods: 250,
    podPidsLimit: -1,
    serializeImagePulls: false,
    maxParallelImagePulls: 4,
    registryPullQPS: 0,
    kubeAPIQPS: 200,
    kubeAPIBurst: 400,
    eventRecordQPS: 100,
    eventBurst: 200,
    nodeStatusUpdateFrequency: '10s',
    containerLogMaxSize: '10Mi',
    containerLogMaxFiles: 2,
    podLogsDir: '/var/log/pods',
    volumePluginDir: `${SEED_PATHS.kubelet}/volume-plugins`,
    // Laptop disks are often nearly full, and evicted images are unavailable without a registry.
    evictionHard: {
      'memory.available': '50Mi',
      'nodefs.available': '1%',
      'nodefs.inodesFree': '1%',
      'imagefs.available': '1%',
    },
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
    enforceNodeAllocatable: [],
  };
}

export const kubeProxyConfig = (options: { pods: string; kubeconfig: string }): object => ({
  apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
  kind: 'KubeProxyConfiguration',
  mode: 'iptables',
  hostnameOverride: NODE_NAME,
  clusterCIDR: options.pods,
  detectLocalMode: 'ClusterCIDR',
  healthzBindAddress: '127.0.0.1:10256',
  metricsBindAddress: '127.0.0.1:10249',
  clientConnection: { kubeconfig: options.kubeconfig, qps: 100, burst: 200 },
  iptables: { minSyncPeriod: '20ms', syncPeriod: '30s' },
  // Zero leaves the machine's conntrack table unchanged.
  conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
});

/** Writes the node's configuration files. After a change their process must be restarted. */
export async function writeNodeConfig(context: NodeContext): Promise<void> {
  const { directory, state, files, cgroup } = context;
  const isRootless = cgroup === undefined;
  const seed = (...parts: string[]) => configFile(directory, ...parts);
  const restrictOomScore = isRootless || !(await canLowerOomScore());
  const rootlessRunc = seed('runc');
  if (isRootless) await writeIfChanged(rootlessRunc, runcAsOneUser(files.runc), 0o700);
  const json = (value: object) => JSON.stringify(value, undefined, 2);
  await writeIfChanged(
    seed('containerd.toml'),
    containerdConfig({
      pauseImage: context.pauseImage,
      pluginFolder: dirname(files.bridge),
      restrictOomScore,
      ...(isRootless && { rootlessRunc }),
    }),
  );
  await writeIfChanged(seed('cni', '10-coppice.conflist'), json(cniConfig(state.ranges.pods)));
  const hosts = ['registry', '_default', 'hosts.toml'] as const;
  const { imageMirror } = context;
  const hostsFile = [SEED_PATHS.config, ...hosts].join('/');
  await writeIfChanged(seed(...hosts), imageMirror ? mirrorHosts(imageMirror, hostsFile) : '');
  // The relay of outbound DNS. Without outbound access the port is closed and look-ups fail at once; with the host's
  // resolver they would time out after seconds.
  const resolver = `nameserver ${state.ranges.nodeAddress}\n`;
  await writeIfChanged(seed('resolv.conf'), resolver, 0o644);
  await writeIfChanged(
    seed('kubelet.json'),
    json(
      kubeletConfig({
        nodeAddress: state.ranges.nodeAddress,
        cgroup,
        pki: (name) => directory.pki(name),
        resolvConf: `${SEED_PATHS.config}/resolv.conf`,
      }),
    ),
  );
  await writeIfChanged(
    seed('kube-proxy.json'),
    json(kubeProxyConfig({ pods: state.ranges.pods, kubeconfig: directory.kubeconfigFile('kube-proxy') })),
  );
}

export function containerdProcess(context: NodeContext): ProcessSpec {
  const { directory, enter, files } = context;
  return {
    name: 'containerd',
    command: [...enter, files.containerd, '--config', `${SEED_PATHS.config}/containerd.toml`, '--log-level', 'warn'],
    env: environment(context),
    inputs: [configFile(directory, 'containerd.toml')],
    ready: () =>
      run([...enter, files.ctr, '--address', SEED_PATHS.socket, 'version'], { timeoutMs: 5_000 }).then(
        () => true,
        () => false,
      ),
  };
}

export function kubeletProcess(context: NodeContext): ProcessSpec {
  const { directory, enter, state, files } = context;
  return {
    name: 'kubelet',
    command: [
      ...enter,
      files.kubelet,
      `--config=${SEED_PATHS.config}/kubelet.json`,
      `--kubeconfig=${directory.kubeconfigFile('kubelet')}`,
      `--root-dir=${SEED_PATHS.kubelet}`,
      `--cert-dir=${SEED_PATHS.kubelet}/pki`,
      `--hostname-override=${NODE_NAME}`,
      `--node-ip=${state.ranges.nodeAddress}`,
    ],
    env: environment(context),
    inputs: [
      configFile(directory, 'kubelet.json'),
      directory.kubeconfigFile('kubelet'),
      ...['kubelet-server.crt', 'ca.crt'].map((name) => directory.pki(name)),
    ],
  };
}

export function kubeProxy(context: NodeContext): ProcessSpec {
  const { directory, enter, files } = context;
  return {
    name: 'kube-proxy',
    command: [...enter, files['kube-proxy'], `--config=${SEED_PATHS.config}/kube-proxy.json`],
    env: environment(context),
    inputs: [configFile(directory, 'kube-proxy.json'), directory.kubeconfigFile('kube-proxy')],
  };
}
