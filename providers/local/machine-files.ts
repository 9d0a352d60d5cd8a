import { readFileSync } from 'node:fs';
import { dump } from 'js-yaml';
import { shortHash } from '../../operator/api/names.ts';
import type { Pool, ProviderContext } from '../contract.ts';
import { type Capacity, capacityOf } from '../machine-types.ts';
import { environmentFile, nodeLabels, registeredTaints, selfLabels } from '../nodes.ts';
import { mirrorHosts } from './mirror-hosts.ts';

/** Inputs of a machine's files. */
export type MachineContext = Pick<
  ProviderContext,
  | 'apiserverURL'
  | 'clusterCA'
  | 'clusterDomain'
  | 'dnsIP'
  | 'imageMirror'
  | 'imageMirrorCA'
  | 'kubernetesVersion'
  | 'machineImage'
  | 'podCIDR'
  | 'profile'
  | 'region'
  | 'vni'
>;

/** Mount path of the pool's Secret in a machine. */
export const CONFIG_FOLDER = '/etc/coppice';
/** Also present in the seed's containerd: every pod has a pause container. */
export const PAUSE_IMAGE = 'registry.k8s.io/pause:3.10.1';

/** containerd's hosts file for all registries, below CONFIG_FOLDER. */
const HOSTS = 'certs.d/_default/hosts.toml';

const ENTRY = readFileSync(new URL('./machine.sh', import.meta.url), 'utf8');

/** Content of a pool's Secret. */
export interface MachineFiles {
  /** By path below CONFIG_FOLDER. Without the kubeconfigs of kubelet and kube-proxy. */
  files: Record<string, string>;
  /**
   * Changes when existing machines must be replaced. Excludes labels and taints, which existing nodes get directly, and
   * certificates and the entry script, which every new machine gets.
   */
  fingerprint: string;
}

/** Configuration files of a pool's machines; `more` are further kubelet settings. Pure. */
export function machineFiles(ctx: MachineContext, pool: Pool, more: object = {}): MachineFiles {
  const capacity = capacityOf(ctx.profile, pool.machineType);
  const kubelet = { ...kubeletConfiguration(ctx, capacity), ...more };
  const taints = registeredTaints(pool);
  const lasting: Record<string, string> = {
    'kube-proxy.yaml': yaml(kubeProxyConfiguration(ctx)),
    'containerd.toml': containerdConfiguration(),
    'cni.template': cniTemplate(),
    'machine.env': environmentFile({
      CPU_CORES: String(cores(capacity)),
      MEMORY_KIB: String(Math.floor(capacity.bytes / 1024)),
      POD_CIDR: ctx.podCIDR,
      VNI: String(ctx.vni),
      ZONES: pool.zones.join(' '),
    }),
  };
  const { imageMirror: url, imageMirrorCA: ca } = ctx;
  const mirror = url ? { url, ...(ca && { ca }) } : undefined;
  return {
    files: {
      ...lasting,
      ...(mirror && { [HOSTS]: mirrorHosts(mirror, `${CONFIG_FOLDER}/${HOSTS}`) }),
      'machine.sh': ENTRY,
      'pool.env': environmentFile({ NODE_LABELS: selfLabels(nodeLabels(ctx, pool)) }),
      'kubelet.yaml': yaml({ ...kubelet, ...(taints.length > 0 && { registerWithTaints: taints }) }),
      ...(ctx.machineImage && { 'kube-proxy-pod.yaml': yaml(kubeProxyPod(ctx)) }),
      'kubelet-client-ca.crt': ctx.clusterCA,
    },
    fingerprint: shortHash(JSON.stringify([ctx.apiserverURL, kubelet, withEarlierMirror(lasting, mirror?.url)])),
  };
}

/** CPUs are whole: kubelet reserves the difference to the next whole number. */
const cores = (capacity: Capacity): number => Math.max(1, Math.ceil(capacity.millicores / 1000));

/**
 * The entry script replaces /proc/meminfo and /sys/devices/system/cpu, so Capacity and Allocatable are the machine
 * type's, whatever the host's size.
 */
function kubeletConfiguration(ctx: MachineContext, capacity: Capacity): object {
  const reserved = cores(capacity) * 1000 - capacity.millicores;
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    address: '0.0.0.0',
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: `${CONFIG_FOLDER}/kubelet-client-ca.crt` },
    },
    authorization: { mode: 'Webhook' },
    cgroupDriver: 'cgroupfs',
    clusterDNS: [ctx.dnsIP],
    clusterDomain: ctx.clusterDomain,
    containerRuntimeEndpoint: 'unix:///run/containerd/containerd.sock',
    // Machines share the host's disk: evicting pods or images on one would not free it.
    evictionHard: { 'imagefs.available': '0%', 'nodefs.available': '0%', 'nodefs.inodesFree': '0%' },
    imageGCHighThresholdPercent: 100,
    failCgroupV1: false,
    failSwapOn: false,
    healthzPort: 0,
    maxPods: capacity.pods,
    oomScoreAdj: 0,
    rotateCertificates: true,
    serverTLSBootstrap: true,
    serializeImagePulls: false,
    ...(ctx.machineImage && { staticPodPath: '/etc/kubernetes/manifests' }),
    ...(reserved > 0 && { systemReserved: { cpu: `${reserved}m` } }),
  };
}

function kubeProxyConfiguration(ctx: MachineContext): object {
  return {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    bindAddress: '0.0.0.0',
    clientConnection: { kubeconfig: `${CONFIG_FOLDER}/kube-proxy.kubeconfig` },
    clusterCIDR: ctx.podCIDR,
    // These are the host's and cannot be changed from a container.
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
    iptables: { minSyncPeriod: '100ms', syncPeriod: '10m' },
    mode: 'iptables',
  };
}

/**
 * Version 2 of containerd's configuration, which 2.x converts: machines of a garden made with containerd 1.6 restart
 * with the new file before they are replaced. 1.x ignores tables of unknown plugins.
 */
function containerdConfiguration(): string {
  return `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0
imports = []
disabled_plugins = [
  "io.containerd.differ.v1.erofs", "io.containerd.internal.v1.opt", "io.containerd.internal.v1.tracing",
  "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.erofs", "io.containerd.snapshotter.v1.native", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.tracing.processor.v1.otlp",
]
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
    conf_template = "/run/machine/cni.template"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "${CONFIG_FOLDER}/certs.d"
# What containers have used, which the kubelet finds out by itself: 2.4 would look each second.
[plugins."io.containerd.cri.v1.runtime"]
  stats_collect_period = "1m"
`;
}

/**
 * The entry script fills in the MTU, and containerd the node's pod range once kubelet knows it: until then the node is
 * NotReady.
 */
function cniTemplate(): string {
  return `{
  "cniVersion": "1.0.0",
  "name": "pods",
  "plugins": [
    {
      "type": "ptp",
      "ipMasq": false,
      "mtu": @MTU@,
      "ipam": {
        "type": "host-local",
        "dataDir": "/run/machine/pod-addresses",
        "ranges": [{{range $i, $range := .PodCIDRRanges}}{{if $i}}, {{end}}[{"subnet": "{{$range}}"}]{{end}}],
        "routes": [{"dst": "0.0.0.0/0"}]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`;
}

/**
 * Adds the file of older machines, whose mirror had no TLS. containerd reads it on each pull, so these machines need no
 * replacement.
 */
function withEarlierMirror(files: Record<string, string>, url: string | undefined): Record<string, string> {
  if (!url) return files;
  const { 'machine.env': environment, ...others } = files;
  const hosts = mirrorHosts({ url: url.replace(/^https:/, 'http:') }, '');
  return { ...others, [HOSTS]: hosts, ...(environment !== undefined && { 'machine.env': environment }) };
}

/** For images without kube-proxy (kindest/node): kube-proxy as a static pod. Untested. */
function kubeProxyPod(ctx: MachineContext): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'kube-proxy', namespace: 'kube-system' },
    spec: {
      hostNetwork: true,
      priorityClassName: 'system-node-critical',
      containers: [
        {
          name: 'kube-proxy',
          image: `registry.k8s.io/kube-proxy:v${ctx.kubernetesVersion}`,
          command: ['kube-proxy', `--config=${CONFIG_FOLDER}/kube-proxy.yaml`, '--hostname-override=$(NODE_NAME)'],
          env: [{ name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }],
          securityContext: { privileged: true },
          volumeMounts: [{ name: 'config', mountPath: CONFIG_FOLDER, readOnly: true }],
        },
      ],
      volumes: [{ name: 'config', hostPath: { path: CONFIG_FOLDER } }],
    },
  };
}

const yaml = (value: object): string => dump(value, { lineWidth: -1, noRefs: true });
