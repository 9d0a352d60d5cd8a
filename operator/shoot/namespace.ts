import type { KubeObject } from '../api/meta.ts';
import { type ControlPlane, controlPlaneLabels } from './values.ts';

/** The shoot's namespace in the seed. Machines of the local provider are privileged pods, so it admits those. */
export function namespace(values: Pick<ControlPlane, 'namespace' | 'shoot'>): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      name: values.namespace,
      labels: { ...controlPlaneLabels(values), 'pod-security.kubernetes.io/enforce': 'privileged' },
    },
  };
}
