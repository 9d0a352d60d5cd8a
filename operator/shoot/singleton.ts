import type { KubeObject } from '../api/meta.ts';
import { componentSecret, deploymentManifest, filesChecksum, httpProbe } from './pod.ts';
import type { ControlPlane } from './values.ts';
import { kubernetesImage } from './versions.ts';

/** A client of the API server of which one instance is active: the controller manager, the scheduler. */
interface Singleton {
  name: 'kube-controller-manager' | 'kube-scheduler';
  args: string[];
  files: Record<string, string>;
  /** Mount path of the files. */
  mountPath: string;
  port: number;
  /** Paths of the health endpoints. */
  ready: string;
  live: string;
}

/** A second instance takes over within seconds; a third would only use memory. */
export const singletonReplicas = (values: ControlPlane): number => Math.min(values.replicas, 2);

/** Its Secret and its Deployment. */
export function singletonManifests(values: ControlPlane, component: Singleton): KubeObject[] {
  const { name, args, files, mountPath, port, ready, live } = component;
  const replicas = singletonReplicas(values);
  const probe = (path: string, period: number, failures: number) =>
    httpProbe(path, 'https', { scheme: 'HTTPS', period, failures });
  return [
    componentSecret(values, name, files),
    deploymentManifest(
      values,
      {
        name,
        image: kubernetesImage(name, values.version),
        args,
        env: [{ name: 'GOGC', value: '50' }],
        ports: [{ name: 'https', containerPort: port }],
        probes: {
          startupProbe: probe(ready, 1, 300),
          readinessProbe: probe(ready, 10, 3),
          livenessProbe: probe(live, 10, 6),
        },
        mountPath,
        checksum: filesChecksum(files),
        gracePeriodSeconds: 5,
        spread: replicas > 1,
      },
      // Recreate: without leader election two must never run side by side, not even while the number changes.
      { replicas, strategy: { type: 'Recreate' } },
    ),
  ];
}
