import { z } from 'zod';
import {
  count,
  countOrPercent,
  describe,
  free,
  kubernetesVersion,
  labels,
  list,
  machineTypeName,
  map,
  name,
  PATTERNS,
  rules,
  text,
} from './schema.ts';
import { distinctZones, MAX_NODES, TAINTS_DIFFER, taintFields } from './worker-pool.ts';

const machine = describe(
  z.object({
    type: machineTypeName('A machine type of the profile.'),
    image: z
      .object({
        name: name(63, 'A machine image of the profile.'),
        version: text(64, 'Version of the image. Absent: the newest.').optional(),
        providerConfig: free('Provider-specific configuration.').optional(),
      })
      .describe('Operating system image of the machines.')
      .optional(),
    architecture: text(16, 'CPU architecture, amd64 or arm64.').optional(),
  }),
  'What the machines are.',
);

/** A worker pool of a Shoot, with Gardener's fields. */
export const shootWorkerSchema = rules(
  z.object({
    name: name(15, 'Name of the pool; part of the names of its machines.', PATTERNS.label),
    machine,
    minimum: count(0, MAX_NODES, 'Fewest machines of the pool.'),
    maximum: count(0, MAX_NODES, 'Most machines of the pool.'),
    maxSurge: countOrPercent('Machines that may be added during a roll.').default(1),
    maxUnavailable: countOrPercent('Machines that may be missing during a roll.').default(0),
    zones: distinctZones('Zones that the machines are spread over.').optional(),
    labels: labels(64, 'Labels of the nodes.').optional(),
    annotations: map(64, 'Annotations of the nodes.').optional(),
    ...taintFields,
    caBundle: text(65536, 'Certificates that the machines trust, PEM.').optional(),
    cri: free('Container runtime.').optional(),
    kubernetes: z
      .object({
        version: kubernetesVersion('Version of the kubelet, when it differs from the control plane.').optional(),
        kubelet: free('Configuration of the kubelet.').optional(),
      })
      .describe('Kubernetes version of this pool, if it differs from that of the cluster.')
      .optional(),
    volume: free('Root volume.').optional(),
    dataVolumes: list(free('A volume.'), 32, 'Further volumes.').optional(),
    kubeletDataVolumeName: text(63, 'Data volume that the kubelet uses.').optional(),
    providerConfig: free('Provider-specific configuration.').optional(),
    systemComponents: free('Whether system components may run here.').optional(),
    machineControllerManager: free('Timeouts of machine creation, drain and health.').optional(),
    sysctls: map(64, 'Kernel parameters of the nodes.').optional(),
    clusterAutoscaler: free('Autoscaling of this pool.').optional(),
    priority: count(-2147483648, 2147483647, 'Priority of the pool for the autoscaler.').optional(),
    updateStrategy: text(64, 'AutoRollingUpdate, AutoInPlaceUpdate or ManualInPlaceUpdate.').optional(),
    controlPlane: free(
      'Set (to {}) on the one pool whose machines run the control plane: a self-hosted shoot. It has 1, 3 or 5 machines.',
    ).optional(),
  }),
  TAINTS_DIFFER,
  {
    rule: 'self.minimum <= self.maximum',
    messageExpression: "'pool ' + self.name + ': minimum is larger than maximum'",
    message: 'minimum is larger than maximum',
  },
).describe('A pool of equal machines.');
/** One worker pool of a Shoot. */
export type Worker = z.output<typeof shootWorkerSchema>;
