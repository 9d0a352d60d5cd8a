/** Version of etcd in new control planes. */
export const ETCD_VERSION = '3.7.3';
/** Version of CoreDNS in new clusters. */
const COREDNS_VERSION = '1.15.0';
/** Version of both ends of the tunnel between API server and machines outside its seed. */
const KONNECTIVITY_VERSION = '0.36.0';
/** Version of the volume provisioner on machines of new clusters. */
const LOCAL_PATH_VERSION = '0.0.30';
/** Version of metrics-server, where enabled. */
const METRICS_SERVER_VERSION = '0.9.0';

/** Image of a Kubernetes control plane component at a version such as `1.36.3`. */
export const kubernetesImage = (component: string, version: string): string =>
  `registry.k8s.io/${component}:v${version}`;

export const ETCD_IMAGE = `registry.k8s.io/etcd:${ETCD_VERSION}-0`;
export const COREDNS_IMAGE = `registry.k8s.io/coredns/coredns:v${COREDNS_VERSION}`;
export const LOCAL_PATH_IMAGE = `docker.io/rancher/local-path-provisioner:v${LOCAL_PATH_VERSION}`;
export const METRICS_SERVER_IMAGE = `registry.k8s.io/metrics-server/metrics-server:v${METRICS_SERVER_VERSION}`;

/** Image of one end of the tunnel. */
export const konnectivityImage = (end: 'proxy-server' | 'proxy-agent'): string =>
  `registry.k8s.io/kas-network-proxy/${end}:v${KONNECTIVITY_VERSION}`;
