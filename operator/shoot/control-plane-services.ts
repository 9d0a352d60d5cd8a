import type { KubeObject } from '../api/meta.ts';
import { controlPlaneMachineName } from '../api/names.ts';
import { API_SERVER_PORT, type ControlPlane, controlPlaneLabels, ETCD_CLIENT_PORT, ETCD_PEER_PORT } from './values.ts';

/**
 * The Service that gives machine `ordinal` of a control plane a permanent address, used for its API server and etcd
 * member.
 */
export function controlPlaneMachineService(
  values: Pick<ControlPlane, 'namespace' | 'shoot'>,
  pool: string,
  ordinal: number,
): KubeObject {
  const name = controlPlaneMachineName(pool, ordinal);
  const port = (portName: string, number: number) => ({
    name: portName,
    port: number,
    targetPort: number,
    protocol: 'TCP',
  });
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: values.namespace, labels: controlPlaneLabels(values) },
    spec: {
      type: 'ClusterIP',
      selector: { 'statefulset.kubernetes.io/pod-name': name },
      // Members must find each other before any of them is ready.
      publishNotReadyAddresses: true,
      ports: [port('https', API_SERVER_PORT), port('client', ETCD_CLIENT_PORT), port('peer', ETCD_PEER_PORT)],
    },
  };
}
