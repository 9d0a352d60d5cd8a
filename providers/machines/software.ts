/**
 * Releases that a machine installs besides Kubernetes; install.sh has the sources. Equal to those of the embedded
 * garden's machines (operator/garden/toolchain/tools.ts), where they are tested.
 */
export const RELEASES = { CONTAINERD: '2.4.2', RUNC: '1.5.2', CNI_PLUGINS: '1.9.1' } as const;

/** Image of every pod's pause container. */
export const CLOUD_PAUSE_IMAGE = 'registry.k8s.io/pause:3.10.1';
