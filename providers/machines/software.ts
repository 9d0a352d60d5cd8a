/**
 * What a machine installs besides Kubernetes, by release; from where, install.sh says. The same releases as the embedded garden
 * runs its local machines on (operator/garden/toolchain/tools.ts), which is where they are tested.
 */
export const RELEASES = { CONTAINERD: '2.4.2', RUNC: '1.5.2', CNI_PLUGINS: '1.9.1' } as const;

/** The image of every pod's first container. */
export const PAUSE_IMAGE = 'registry.k8s.io/pause:3.10.1';
