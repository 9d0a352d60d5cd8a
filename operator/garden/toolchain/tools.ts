import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Go modules from which tools are built, one folder each with its go.mod. */
export const GO_MODULES = fileURLToPath(new URL('./go', import.meta.url));

/** Published checksum of an archive. `list`: output of sha256sum for one or more files. */
export interface Checksum {
  url: string;
  format: 'list' | 'github-asset';
}

export interface Archive {
  /** `{arch}` stands for amd64 or arm64, `{node-arch}` for x64 or arm64, in all of these texts. */
  url: string;
  checksum: Checksum;
  /** Path of the executable in the tar.gz; absent when the download is the executable. */
  member?: string;
}

interface GoBuild {
  /** Folder under GO_MODULES. */
  module: string;
  package: string;
  ldflags: string;
  /** The tool is the package's test binary, alone in its group. */
  isTest?: true;
  /** Tools of a group are linked in parallel by one `go build`. */
  group: string;
  /** Seconds on 2 idle cores after the preceding builds of the table; mainly the proportions matter. */
  weight: number;
}

/** A supported Kubernetes version, without "v". The first is the garden's own. */
export const KUBERNETES_VERSIONS = ['1.36.3', '1.35.4'] as const;
export type KubernetesVersion = (typeof KUBERNETES_VERSIONS)[number];

export interface Tool {
  /** Name of its executable where it differs from the tool's: for two versions of one program. */
  program?: string;
  /** Pinned version: the release that is fetched or built. */
  version: string;
  /** Condition for a file on PATH: same minor and no older patch; at least `oldest`; or any. */
  accepts: 'same-minor' | 'at-least' | 'any';
  /** For `at-least`. */
  oldest?: string;
  /** Arguments that print the version, and its pattern in the output (first group). */
  asks?: { args: string[]; pattern: RegExp };
  /** Must be statically linked, since images contain no C library. */
  isStatic?: boolean;
  /** Tools of a bundle share one folder, in which they find each other, whatever their source. */
  bundle?: string;
  /** Folders searched beside PATH. */
  folders?: string[];
  archive?: Archive;
  build?: GoBuild;
  /** Debian's package. */
  package?: string;
}

const ETCD = '3.7.3';
const KWOK = '0.8.0';
const COREDNS = '1.15.0';
const KONNECTIVITY = '0.36.0';
/** The newest that the module proxy serves. */
const LOCAL_PATH = '0.0.30';
const METRICS_SERVER = '0.9.0';
const CONTAINERD = '2.4.2';
/** The oldest with image volumes and with the generated configuration's version. */
const OLDEST_CONTAINERD = '2.1';
const RUNC = '1.5.2';
const CNI_PLUGINS = '1.9.1';
/** The newest of pkg/v3 that the module proxy serves; it supports newer SDKs (theirs requires 3.2 or later). */
const PULUMI = '3.256.0';
const DISTRIBUTION = '3.1.2';
const HELM = '4.3.1';
/** The newest of 2.14 that the module proxy serves. */
const ARGO_CD = '2.14.21';

const STRIP = '-s -w';

function kubernetesFlags(version: string): string {
  const [major, minor] = version.split('.');
  return [
    STRIP,
    `-X k8s.io/component-base/version.gitVersion=v${version}`,
    `-X k8s.io/component-base/version.gitMajor=${major}`,
    `-X k8s.io/component-base/version.gitMinor=${minor}`,
    '-X k8s.io/component-base/version.gitTreeState=clean',
    `-X k8s.io/client-go/pkg/version.gitVersion=v${version}`,
  ].join(' ');
}

/**
 * @param module folder under GO_MODULES
 * @returns programs of the version; those of one `group` are linked in parallel within their module
 */
const kubernetesOf =
  (version: KubernetesVersion, module: string) =>
  (program: string, group: string, weight: number, asks?: Tool['asks']): Tool => ({
    program,
    version,
    accepts: 'same-minor',
    asks: asks ?? { args: ['--version'], pattern: /^Kubernetes v(\d+\.\d+\.\d+)/m },
    isStatic: true,
    archive: {
      url: `https://dl.k8s.io/release/v${version}/bin/linux/{arch}/${program}`,
      checksum: { url: `https://dl.k8s.io/release/v${version}/bin/linux/{arch}/${program}.sha256`, format: 'list' },
    },
    build: {
      module,
      package: `k8s.io/kubernetes/cmd/${program}`,
      ldflags: kubernetesFlags(version),
      group: `${module}/${group}`,
      weight,
    },
  });
const kubernetes = kubernetesOf('1.36.3', 'kubernetes');
const kubernetes135 = kubernetesOf('1.35.4', 'kubernetes-1.35');
const KUBEADM_VERSION = { args: ['version', '--output=short'], pattern: /^v(\d+\.\d+\.\d+)/m };

/** A program for Kubernetes' own tests, whose image contents are published as images only. */
const kubernetesTest = (pkg: string, weight: number): Tool => ({
  version: '1.36.3',
  accepts: 'any',
  // Files on PATH report no version.
  folders: [],
  isStatic: true,
  build: {
    module: 'kubernetes',
    package: pkg,
    ldflags: kubernetesFlags('1.36.3'),
    group: 'kubernetes/test',
    weight,
  },
});
/** A test program published in a separate archive. */
const releasedTest = (program: string, tool: Tool): Tool => {
  const url = `https://dl.k8s.io/v${tool.version}/kubernetes-test-linux-{arch}.tar.gz`;
  const member = `kubernetes/test/bin/${program}`;
  return {
    ...tool,
    bundle: 'kubernetes-test',
    archive: { url, checksum: { url: `${url}.sha256`, format: 'list' }, member },
  };
};
const e2eTest = kubernetesTest('k8s.io/kubernetes/test/e2e', 240);

const etcd = (name: string, pkg: string, asks: Tool['asks'], weight: number): Tool => {
  const release = `https://github.com/etcd-io/etcd/releases/download/v${ETCD}`;
  return {
    version: ETCD,
    accepts: 'same-minor',
    asks,
    isStatic: true,
    archive: {
      url: `${release}/etcd-v${ETCD}-linux-{arch}.tar.gz`,
      checksum: { url: `${release}/SHA256SUMS`, format: 'list' },
      member: `etcd-v${ETCD}-linux-{arch}/${name}`,
    },
    build: { module: 'etcd', package: pkg, ldflags: STRIP, group: name, weight },
  };
};

const CONTAINERD_VERSION = { args: ['--version'], pattern: / v?(\d+\.\d+\.\d+)/ };
const containerd = (name: string, weight: number, asks: Tool['asks'] = CONTAINERD_VERSION): Tool => {
  const url = `https://github.com/containerd/containerd/releases/download/v${CONTAINERD}/containerd-static-${CONTAINERD}-linux-{arch}.tar.gz`;
  return {
    version: CONTAINERD,
    accepts: 'at-least',
    oldest: OLDEST_CONTAINERD,
    asks,
    bundle: 'containerd',
    archive: { url, checksum: { url: `${url}.sha256sum`, format: 'list' }, member: `bin/${name}` },
    build: {
      module: 'containerd',
      package: `github.com/containerd/containerd/v2/cmd/${name}`,
      ldflags: `${STRIP} -X github.com/containerd/containerd/v2/version.Version=v${CONTAINERD}`,
      group: 'containerd',
      weight,
    },
  };
};

const cniPlugin = (name: string): Tool => {
  const url = `https://github.com/containernetworking/plugins/releases/download/v${CNI_PLUGINS}/cni-plugins-linux-{arch}-v${CNI_PLUGINS}.tgz`;
  return {
    version: CNI_PLUGINS,
    accepts: 'any',
    bundle: 'cni-plugins',
    folders: ['/opt/cni/bin', '/usr/lib/cni', '/usr/libexec/cni'],
    archive: { url, checksum: { url: `${url}.sha256`, format: 'list' }, member: `./${name}` },
    package: 'containernetworking-plugins',
  };
};

/** Published as images only, and its programs report no version. */
const konnectivity = (name: string, weight: number): Tool => ({
  version: KONNECTIVITY,
  accepts: 'any',
  // Files on PATH may be of any version.
  folders: [],
  isStatic: true,
  build: {
    module: 'konnectivity',
    package: `sigs.k8s.io/apiserver-network-proxy/cmd/${name.replace('proxy-', '')}`,
    ldflags: STRIP,
    group: name,
    weight,
  },
});

/** A program of Coppice's own: its version contains a digest of the source, so that a change triggers a build. */
const own = (name: string, version: string): Tool => {
  const digest = createHash('sha256')
    .update(readFileSync(join(GO_MODULES, name, 'main.go')))
    .digest('hex');
  return {
    version: `${version}-${digest.slice(0, 8)}`,
    accepts: 'any',
    // Programs of this name on PATH are unrelated.
    folders: [],
    isStatic: true,
    build: { module: name, package: '.', ldflags: STRIP, group: name, weight: 1 },
  };
};

const packaged = (pkg: string): Tool => ({ version: 'any', accepts: 'any', package: pkg });

/** All tools in the order in which the first garden needs them, which is the build order. */
const table = {
  etcd: etcd(
    'etcd',
    'go.etcd.io/etcd/server/v3',
    { args: ['--version'], pattern: /^etcd Version: (\d+\.\d+\.\d+)/m },
    55,
  ),
  'kube-apiserver': kubernetes('kube-apiserver', 'kube-apiserver', 345),
  pause: own('pause', '3.10.1'),
  'kube-controller-manager': kubernetes('kube-controller-manager', 'kubernetes', 88),
  'kube-scheduler': kubernetes('kube-scheduler', 'kubernetes', 11),
  kubelet: kubernetes('kubelet', 'kubernetes', 30),
  'kube-proxy': kubernetes('kube-proxy', 'kubernetes', 12),
  containerd: containerd('containerd', 40),
  'containerd-shim-runc-v2': containerd('containerd-shim-runc-v2', 8, {
    args: ['-v'],
    pattern: /^\s+Version:\s+v?(\d+\.\d+\.\d+)/m,
  }),
  ctr: containerd('ctr', 12),
  coredns: {
    version: COREDNS,
    accepts: 'same-minor',
    asks: { args: ['--version'], pattern: /^CoreDNS-(\d+\.\d+\.\d+)/m },
    isStatic: true,
    archive: {
      url: `https://github.com/coredns/coredns/releases/download/v${COREDNS}/coredns_${COREDNS}_linux_{arch}.tgz`,
      checksum: {
        url: `https://github.com/coredns/coredns/releases/download/v${COREDNS}/coredns_${COREDNS}_linux_{arch}.tgz.sha256`,
        format: 'list',
      },
      member: 'coredns',
    },
    build: { module: 'coredns', package: '.', ldflags: STRIP, group: 'coredns', weight: 40 },
  },
  kubectl: kubernetes('kubectl', 'kubectl', 25, {
    args: ['version', '--client'],
    pattern: /^Client Version: v(\d+\.\d+\.\d+)/m,
  }),
  kwok: {
    version: KWOK,
    accepts: 'same-minor',
    asks: { args: ['--version'], pattern: /version v(\d+\.\d+\.\d+)/ },
    isStatic: true,
    archive: {
      url: `https://github.com/kubernetes-sigs/kwok/releases/download/v${KWOK}/kwok-linux-{arch}`,
      // The project publishes no checksum files; GitHub states the digest of the upload.
      checksum: {
        url: `https://api.github.com/repos/kubernetes-sigs/kwok/releases/tags/v${KWOK}`,
        format: 'github-asset',
      },
    },
    build: {
      module: 'kwok',
      package: 'sigs.k8s.io/kwok/cmd/kwok',
      ldflags: `${STRIP} -X sigs.k8s.io/kwok/pkg/consts.Version=${KWOK}`,
      group: 'kwok',
      weight: 70,
    },
  },
  // After everything that a first cluster needs to become Ready. Published as images only.
  'local-path-provisioner': {
    version: LOCAL_PATH,
    accepts: 'any',
    folders: [],
    isStatic: true,
    build: {
      module: 'local-path-provisioner',
      package: 'github.com/rancher/local-path-provisioner',
      ldflags: `${STRIP} -X main.VERSION=v${LOCAL_PATH}`,
      group: 'local-path-provisioner',
      weight: 6,
    },
  },
  kubeadm: kubernetes('kubeadm', 'kubeadm', 30, KUBEADM_VERSION),
  etcdctl: etcd(
    'etcdctl',
    'go.etcd.io/etcd/etcdctl/v3',
    { args: ['version'], pattern: /^etcdctl version: (\d+\.\d+\.\d+)/m },
    7,
  ),
  // Restores an etcd from a snapshot.
  etcdutl: etcd(
    'etcdutl',
    'go.etcd.io/etcd/etcdutl/v3',
    { args: ['version'], pattern: /^etcdutl version: (\d+\.\d+\.\d+)/m },
    7,
  ),
  // Both for clusters whose machines are outside the seed.
  'proxy-server': konnectivity('proxy-server', 15),
  'proxy-agent': konnectivity('proxy-agent', 4),
  echo: own('echo', '1'),
  pulumi: {
    version: PULUMI,
    accepts: 'at-least',
    oldest: PULUMI,
    asks: { args: ['version'], pattern: /^v(\d+\.\d+\.\d+)/m },
    archive: {
      url: `https://github.com/pulumi/pulumi/releases/download/v${PULUMI}/pulumi-v${PULUMI}-linux-{node-arch}.tar.gz`,
      checksum: {
        url: `https://github.com/pulumi/pulumi/releases/download/v${PULUMI}/pulumi-${PULUMI}-checksums.txt`,
        format: 'list',
      },
      member: 'pulumi/pulumi',
    },
    build: {
      module: 'pulumi',
      package: 'github.com/pulumi/pulumi/pkg/v3/cmd/pulumi',
      ldflags: `${STRIP} -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v${PULUMI}`,
      group: 'pulumi',
      weight: 240,
    },
  },
  // Built on request only. Published as images only.
  'metrics-server': {
    version: METRICS_SERVER,
    accepts: 'any',
    folders: [],
    isStatic: true,
    build: {
      module: 'metrics-server',
      package: 'sigs.k8s.io/metrics-server/cmd/metrics-server',
      ldflags: `${STRIP} -X k8s.io/client-go/pkg/version.gitVersion=v${METRICS_SERVER}`,
      group: 'metrics-server',
      weight: 8,
    },
  },
  'kube-apiserver-1.35': kubernetes135('kube-apiserver', 'kube-apiserver', 345),
  'kube-controller-manager-1.35': kubernetes135('kube-controller-manager', 'kubernetes', 88),
  'kube-scheduler-1.35': kubernetes135('kube-scheduler', 'kubernetes', 11),
  'kubelet-1.35': kubernetes135('kubelet', 'kubernetes', 30),
  'kube-proxy-1.35': kubernetes135('kube-proxy', 'kubernetes', 12),
  'kubeadm-1.35': kubernetes135('kubeadm', 'kubeadm', 30, KUBEADM_VERSION),
  // Used by tests only, to install the chart.
  helm: {
    version: HELM,
    accepts: 'same-minor',
    asks: { args: ['version', '--template={{.Version}}'], pattern: /^v(\d+\.\d+\.\d+)/m },
    archive: {
      url: `https://get.helm.sh/helm-v${HELM}-linux-{arch}.tar.gz`,
      checksum: { url: `https://get.helm.sh/helm-v${HELM}-linux-{arch}.tar.gz.sha256sum`, format: 'list' },
      member: 'linux-{arch}/helm',
    },
    build: {
      module: 'helm',
      package: 'helm.sh/helm/v4/cmd/helm',
      ldflags: `${STRIP} -X helm.sh/helm/v4/internal/version.version=v${HELM}`,
      group: 'helm',
      weight: 60,
    },
  },
  // Used by tests only, which select one of its programs by ARGOCD_BINARY_NAME.
  'argo-cd': {
    version: ARGO_CD,
    accepts: 'any',
    // Files on PATH under another name are the CLI, of any version.
    folders: [],
    archive: {
      url: `https://github.com/argoproj/argo-cd/releases/download/v${ARGO_CD}/argocd-linux-{arch}`,
      checksum: {
        url: `https://github.com/argoproj/argo-cd/releases/download/v${ARGO_CD}/cli_checksums.txt`,
        format: 'list',
      },
    },
    build: {
      module: 'argo-cd',
      package: '.',
      ldflags: `${STRIP} -X github.com/argoproj/argo-cd/v2/common.version=${ARGO_CD}`,
      group: 'argo-cd',
      weight: 170,
    },
  },
  // Used by tests only: the reference registry for comparisons.
  registry: {
    version: DISTRIBUTION,
    accepts: 'any',
    folders: [],
    archive: {
      url: `https://github.com/distribution/distribution/releases/download/v${DISTRIBUTION}/registry_${DISTRIBUTION}_linux_{arch}.tar.gz`,
      checksum: {
        url: `https://github.com/distribution/distribution/releases/download/v${DISTRIBUTION}/registry_${DISTRIBUTION}_linux_{arch}.tar.gz.sha256`,
        format: 'list',
      },
      member: 'registry',
    },
    build: { module: 'distribution', package: '.', ldflags: STRIP, group: 'registry', weight: 25 },
  },
  // Used by conformance tests only: Kubernetes' tests, their parallel runner, and contents of their pods' images.
  'e2e.test': releasedTest('e2e.test', {
    ...e2eTest,
    build: { ...e2eTest.build!, isTest: true, group: 'kubernetes/e2e.test' },
  }),
  ginkgo: releasedTest('ginkgo', kubernetesTest('github.com/onsi/ginkgo/v2/ginkgo', 10)),
  agnhost: kubernetesTest('k8s.io/kubernetes/test/images/agnhost', 30),
  nonewprivs: kubernetesTest('k8s.io/kubernetes/test/images/nonewprivs', 2),
  'sample-apiserver': kubernetesTest('k8s.io/sample-apiserver', 20),
  runc: {
    version: RUNC,
    accepts: 'at-least',
    oldest: '1.1',
    asks: { args: ['--version'], pattern: /^runc version (\d+\.\d+\.\d+)/m },
    archive: {
      url: `https://github.com/opencontainers/runc/releases/download/v${RUNC}/runc.{arch}`,
      checksum: {
        url: `https://github.com/opencontainers/runc/releases/download/v${RUNC}/runc.sha256sum`,
        format: 'list',
      },
    },
    package: 'runc',
  },
  bridge: cniPlugin('bridge'),
  'host-local': cniPlugin('host-local'),
  ptp: cniPlugin('ptp'),
  loopback: cniPlugin('loopback'),
  portmap: cniPlugin('portmap'),
  iptables: packaged('iptables'),
  conntrack: packaged('conntrack'),
  ip: packaged('iproute2'),
  mount: packaged('mount'),
  umount: packaged('mount'),
  unshare: packaged('util-linux'),
  nsenter: packaged('util-linux'),
  // Outbound access of a garden, in user mode. Older versions have no sandbox.
  slirp4netns: {
    version: '1.2.0',
    accepts: 'at-least',
    oldest: '1.0.0',
    asks: { args: ['--version'], pattern: /^slirp4netns version (\d+\.\d+\.\d+)/m },
    package: 'slirp4netns',
  },
  // For Argo CD, in tests.
  'redis-server': packaged('redis-server'),
  git: packaged('git'),
} satisfies Record<string, Tool>;

export type ToolName = keyof typeof table;

export const TOOLS: Readonly<Record<ToolName, Tool>> = table;

export const TOOL_NAMES = Object.keys(table) as ToolName[];

/** The tool for a Kubernetes program at a version. Throws where the table has none. */
export function kubernetesTool(program: string, version: KubernetesVersion): ToolName {
  const found = TOOL_NAMES.find((name) => TOOLS[name].version === version && TOOLS[name].program === program);
  if (!found) throw new Error(`there is no ${program} of Kubernetes ${version}`);
  return found;
}

/** Whether it may have to be compiled, which takes minutes. */
export const isBuilt = (name: ToolName): boolean => TOOLS[name].build !== undefined;

/** Name of a tool's executable. */
export const programOf = (name: ToolName): string => TOOLS[name].program ?? name;

/** The cache's folder of a tool: `<program or bundle>-<version>`. */
export const cacheFolder = (name: ToolName): string =>
  `${TOOLS[name].bundle ?? programOf(name)}-${TOOLS[name].version}`;

/** All tools that share a folder with this one, itself included. */
export const toolBundleOf = (name: ToolName): ToolName[] => {
  const { bundle } = TOOLS[name];
  return bundle === undefined ? [name] : TOOL_NAMES.filter((other) => TOOLS[other].bundle === bundle);
};
