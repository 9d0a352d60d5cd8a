import type { KubeObject } from '../api/meta.ts';
import { type PodSecurityLevel, podSecurityLabels } from '../kube/pod-security.ts';
import { type ControlPlane, controlPlaneLabels } from './values.ts';

/**
 * The shoot's namespace in the seed. @param level `privileged` where machines are pods of the seed, which are
 * privileged
 */
export function namespaceManifest(
  values: Pick<ControlPlane, 'namespace' | 'shoot'>,
  level: PodSecurityLevel,
): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      name: values.namespace,
      labels: { ...controlPlaneLabels(values), ...podSecurityLabels(level) },
    },
  };
}
