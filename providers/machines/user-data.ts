import { readFileSync } from 'node:fs';
import { dump } from 'js-yaml';
import { configurationProblem } from '../../operator/api/errors.ts';
import type { Pool, ProviderContext } from '../contract.ts';
import { capacityOf } from '../machine-types.ts';
import { environmentFile, nodeLabels, registeredTaints, selfLabels } from '../nodes.ts';
import { CLOUD_PAUSE_IMAGE, RELEASES } from './software.ts';

/** Facts about the cluster for a machine in a cloud. */
export type JoinContext = Pick<
  ProviderContext,
  'apiserverURL' | 'clusterCA' | 'clusterDomain' | 'dnsIP' | 'kubernetesVersion' | 'podCIDR' | 'profile' | 'region'
>;

/**
 * Longest user data, bytes before base64: EC2's limit is the lowest ("User data is limited to 16 KB, in raw form",
 * Amazon EC2 user guide, instancedata-add-user-data). Azure takes 65535 (VirtualMachineScaleSetOSProfileArgs.customData
 * in @pulumi/azure-native), Google 256 KB per value (cloud.google.com/compute/docs/metadata/setting-custom-metadata).
 */
export const LONGEST_USER_DATA = 16 * 1024;

/** Folder for bootstrap data on machines. */
export const HOME = '/etc/coppice';
/** Text of a script beside this file, without comments. */
export const script = (name: string): string => {
  const [first, ...rest] = readFileSync(new URL(`./${name}`, import.meta.url), 'utf8').split('\n');
  // Comments would take a tenth of the room for user data.
  return [first, ...rest.filter((line) => !/^\s*#/.test(line))].join('\n');
};
const INSTALL = script('install.sh');
const POD_NETWORK = script('pod_network.py');

/**
 * cloud-init data for a stock Ubuntu 24.04, equal for all clouds: software, configuration, and a join token that
 * expires. Pure. Throws a configuration problem when too long for a cloud.
 * @param bootstrapKubeconfig of the pool; its token goes into a file readable by root only
 */
export function userData(ctx: JoinContext, pool: Pool, bootstrapKubeconfig: string): string {
  const text = cloudConfig([
    file(`${HOME}/secret/bootstrap.kubeconfig`, bootstrapKubeconfig, '0600'),
    ...cloudMachineFiles(ctx, pool),
  ]);
  const bytes = Buffer.byteLength(text);
  if (bytes <= LONGEST_USER_DATA) return text;
  throw configurationProblem(
    `what machines of pool ${pool.name} are told is ${bytes} bytes long, and clouds take ${LONGEST_USER_DATA}`,
    'Give the pool fewer labels or taints: others can be set on its nodes.',
  );
}

/** cloud-config document with these files, which runs install.sh at the end. */
export const cloudConfig = (write_files: readonly File[]): string =>
  `#cloud-config\n${yaml({
    // Restrict the folder before secrets are written to it.
    bootcmd: [['install', '-d', '-m', '700', `${HOME}/secret`]],
    write_files,
    runcmd: [[`${HOME}/install.sh`]],
  })}`;

/** A file entry of cloud-init. */
export interface File {
  path: string;
  permissions: string;
  content: string;
}

/**
 * Files of every machine of a cluster.
 * @param kubelet further kubelet settings
 * @param environment further variables for install.sh
 */
export function cloudMachineFiles(
  ctx: JoinContext,
  pool: Pool,
  kubelet: object = {},
  environment: Record<string, string> = {},
): File[] {
  const files: Record<string, string> = {
    [`${HOME}/ca.crt`]: ctx.clusterCA,
    [`${HOME}/machine.env`]: environmentFile({
      ...RELEASES,
      KUBERNETES: ctx.kubernetesVersion,
      API_SERVER: ctx.apiserverURL,
      POD_CIDR: ctx.podCIDR,
      NODE_LABELS: selfLabels(nodeLabels(ctx, pool)),
      ...environment,
    }),
    [`${HOME}/kubelet.yaml`]: yaml({ ...kubeletConfiguration(ctx, pool), ...kubelet }),
    [`${HOME}/kube-proxy.yaml`]: yaml(kubeProxyConfiguration(ctx)),
    [`${HOME}/cni.template`]: CNI_TEMPLATE,
    '/etc/containerd/config.toml': CONTAINERD_CONFIGURATION,
    '/etc/modules-load.d/coppice.conf': 'overlay\nbr_netfilter\nvxlan\n',
    '/etc/sysctl.d/90-coppice.conf': SYSCTLS,
    ...Object.fromEntries(
      Object.entries(UNITS).map(([name, lines]) => [`/etc/systemd/system/${name}.service`, systemdUnit(name, lines)]),
    ),
  };
  return [
    ...Object.entries(files).map(([path, content]) => file(path, content, '0644')),
    file(`${HOME}/install.sh`, INSTALL, '0755'),
    file(`${HOME}/pod_network.py`, POD_NETWORK, '0755'),
  ];
}

export const file = (path: string, content: string, permissions: string): File => ({ path, permissions, content });
// Smallest indentation: it is repeated on every line of a file, and room is scarce.
const yaml = (value: object): string => dump(value, { lineWidth: -1, noRefs: true, indent: 2, seqNoIndent: true });

function kubeletConfiguration(ctx: JoinContext, pool: Pool): object {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: `${HOME}/ca.crt` },
    },
    authorization: { mode: 'Webhook' },
    cgroupDriver: 'systemd',
    clusterDNS: [ctx.dnsIP],
    clusterDomain: ctx.clusterDomain,
    containerRuntimeEndpoint: 'unix:///run/containerd/containerd.sock',
    maxPods: capacityOf(ctx.profile, pool.machineType).pods,
    // Ubuntu's resolv.conf names a resolver on loopback, which pods cannot reach.
    resolvConf: '/run/systemd/resolve/resolv.conf',
    rotateCertificates: true,
    serverTLSBootstrap: true,
    serializeImagePulls: false,
    shutdownGracePeriod: '30s',
    shutdownGracePeriodCriticalPods: '10s',
    // For the system, containerd and kubelet: pods that use up all memory would otherwise stop the node.
    systemReserved: { cpu: '100m', memory: '300Mi' },
    ...(registeredTaints(pool).length > 0 && { registerWithTaints: registeredTaints(pool) }),
  };
}

const kubeProxyConfiguration = (ctx: JoinContext): object => ({
  apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
  kind: 'KubeProxyConfiguration',
  clientConnection: { kubeconfig: '/var/lib/kubelet/kubeconfig' },
  clusterCIDR: ctx.podCIDR,
  mode: 'iptables',
});

const CONTAINERD_CONFIGURATION = `version = 3
[plugins."io.containerd.cri.v1.images"]
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "${CLOUD_PAUSE_IMAGE}"
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = "/etc/containerd/certs.d"
[plugins."io.containerd.cri.v1.runtime"]
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      SystemdCgroup = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/opt/cni/bin"]
    conf_dir = "/etc/cni/net.d"
    conf_template = "${HOME}/cni.conf"
`;

/**
 * install.sh fills in the MTU, and containerd the node's pod range once kubelet knows it: until then the node is
 * NotReady.
 */
const CNI_TEMPLATE = `${JSON.stringify({
  cniVersion: '1.0.0',
  name: 'pods',
  plugins: [
    {
      type: 'ptp',
      ipMasq: false,
      mtu: '@MTU@',
      ipam: { type: 'host-local', ranges: '@RANGES@', routes: [{ dst: '0.0.0.0/0' }] },
    },
    { type: 'portmap', capabilities: { portMappings: true } },
  ],
})
  .replace('"@MTU@"', '@MTU@')
  .replace('"@RANGES@"', '[{{range $i, $range := .PodCIDRRanges}}{{if $i}}, {{end}}[{"subnet": "{{$range}}"}]{{end}}]')}
`;

/**
 * Settings from Kubernetes' guide (kubernetes.io/docs/setup/production-environment/container-runtimes), and those that
 * kubelet would set.
 */
const SYSCTLS = `net.ipv4.ip_forward = 1
net.bridge.bridge-nf-call-iptables = 1
net.ipv4.conf.all.rp_filter = 0
net.ipv4.conf.default.rp_filter = 0
vm.overcommit_memory = 1
kernel.panic = 10
kernel.panic_on_oops = 1
fs.inotify.max_user_instances = 8192
`;

/** Bodies of [Service]. */
const UNITS = {
  containerd: [
    'Type=notify',
    'ExecStart=/usr/local/bin/containerd --log-level warn',
    'Delegate=yes',
    'KillMode=process',
    'LimitNOFILE=1048576',
    'TasksMax=infinity',
    'OOMScoreAdjust=-999',
  ],
  kubelet: [
    'EnvironmentFile=/etc/coppice/machine.env',
    'EnvironmentFile=/etc/coppice/node.env',
    `ExecStart=/usr/local/bin/kubelet --config=${HOME}/kubelet.yaml --kubeconfig=/var/lib/kubelet/kubeconfig --bootstrap-kubeconfig=${HOME}/secret/bootstrap.kubeconfig --hostname-override=\${NODE_NAME} --node-ip=\${NODE_IP} --node-labels=\${NODE_LABELS}`,
  ],
  // Uses the kubelet's identity, so it does not start before the machine has joined.
  'kube-proxy': [
    'EnvironmentFile=/etc/coppice/node.env',
    'ExecStartPre=/usr/bin/test -s /var/lib/kubelet/kubeconfig',
    `ExecStart=/usr/local/bin/kube-proxy --config=${HOME}/kube-proxy.yaml --hostname-override=\${NODE_NAME}`,
  ],
  'pod-network': [
    'EnvironmentFile=/etc/coppice/machine.env',
    'EnvironmentFile=/etc/coppice/node.env',
    'ExecStartPre=/usr/bin/test -s /var/lib/kubelet/kubeconfig',
    `ExecStart=/usr/bin/python3 ${HOME}/pod_network.py`,
  ],
};

/** A systemd unit that restarts always. @param service body of [Service] */
export const systemdUnit = (name: string, service: readonly string[]): string =>
  [
    '[Unit]',
    'Wants=network-online.target',
    `After=network-online.target${name === 'containerd' ? '' : ' containerd.service'}`,
    'StartLimitIntervalSec=0',
    '[Service]',
    ...service,
    'Restart=always',
    'RestartSec=2',
    '[Install]',
    'WantedBy=multi-user.target',
    '',
  ].join('\n');
