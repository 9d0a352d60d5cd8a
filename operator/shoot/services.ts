import type { KubeObject } from '../api/meta.ts';
import { COMPONENTS, etcdMemberName } from '../api/names.ts';
import { selectorLabels } from './pod.ts';
import {
  API_SERVER_PORT,
  type ControlPlane,
  controlPlaneLabels,
  ETCD_CLIENT_PORT,
  ETCD_GATEWAY_PORT,
  ETCD_PEER_PORT,
  KONNECTIVITY_PORT,
} from './values.ts';

type ServiceValues = Pick<ControlPlane, 'namespace' | 'shoot' | 'replicas' | 'exposure' | 'machinesOutside'>;

/**
 * The API server's Service, then one for each of `etcdMembers`. Created first: certificates contain their addresses.
 */
export function serviceManifests(values: ServiceValues, etcdMembers: number): KubeObject[] {
  return [
    apiServerService(values),
    ...Array.from({ length: etcdMembers }, (_, ordinal) => etcdMemberService(values, ordinal)),
  ];
}

function apiServerService(values: ServiceValues): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: metadata(values, COMPONENTS.apiServer),
    spec: {
      type: values.exposure ?? 'ClusterIP',
      selector: selectorLabels(COMPONENTS.apiServer),
      // With a single replica there is no alternative, and waiting for the kubelet's probe would only delay.
      publishNotReadyAddresses: values.replicas === 1,
      ports: [
        { name: 'https', port: API_SERVER_PORT, targetPort: API_SERVER_PORT, protocol: 'TCP' },
        ...(values.machinesOutside
          ? [{ name: 'konnectivity', port: KONNECTIVITY_PORT, targetPort: KONNECTIVITY_PORT, protocol: 'TCP' }]
          : []),
      ],
    },
  };
}

/** Service with a permanent address for etcd member `ordinal`. */
function etcdMemberService(values: Pick<ControlPlane, 'namespace' | 'shoot'>, ordinal: number): KubeObject {
  const name = etcdMemberName(ordinal);
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: metadata(values, name),
    spec: {
      type: 'ClusterIP',
      selector: { 'statefulset.kubernetes.io/pod-name': name },
      // Members must find each other before any of them is ready.
      publishNotReadyAddresses: true,
      ports: [
        { name: 'client', port: ETCD_CLIENT_PORT, targetPort: ETCD_CLIENT_PORT, protocol: 'TCP' },
        { name: 'peer', port: ETCD_PEER_PORT, targetPort: ETCD_PEER_PORT, protocol: 'TCP' },
        { name: 'gateway', port: ETCD_GATEWAY_PORT, targetPort: ETCD_GATEWAY_PORT, protocol: 'TCP' },
      ],
    },
  };
}

function metadata(values: Pick<ControlPlane, 'namespace' | 'shoot'>, name: string): KubeObject['metadata'] {
  return { name, namespace: values.namespace, labels: controlPlaneLabels(values) };
}
