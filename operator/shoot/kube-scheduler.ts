import type { KubeObject } from '../api/meta.ts';
import { COMPONENTS } from '../api/names.ts';
import { clientKubeconfig } from './kubeconfigs.ts';
import { keyPair, type PKIData } from './pki.ts';
import { checksum, componentSecret, deployment, httpProbe } from './pod.ts';
import type { ControlPlane } from './values.ts';
import { kubernetesImage } from './versions.ts';

const CONFIG = '/etc/kubernetes';
const PORT = 10259;

/** The scheduler: a Secret and a Deployment. */
export function kubeScheduler(values: ControlPlane, pki: PKIData): KubeObject[] {
  const files = schedulerFiles(values, pki);
  return [
    componentSecret(values, COMPONENTS.scheduler, files),
    deployment(
      values,
      {
        name: COMPONENTS.scheduler,
        image: kubernetesImage('kube-scheduler', values.version),
        args: schedulerArguments(values),
        env: [{ name: 'GOGC', value: '50' }],
        ports: [{ name: 'https', containerPort: PORT }],
        requests: { cpu: '10m', memory: '50Mi' },
        probes: {
          startupProbe: httpProbe('/readyz', 'https', { scheme: 'HTTPS', period: 1, failures: 300 }),
          readinessProbe: httpProbe('/readyz', 'https', { scheme: 'HTTPS', period: 10, failures: 3 }),
          livenessProbe: httpProbe('/livez', 'https', { scheme: 'HTTPS', period: 10, failures: 6 }),
        },
        mountPath: CONFIG,
        checksum: checksum(files),
        gracePeriodSeconds: 5,
        spread: replicasOf(values) > 1,
      },
      // Recreate: without leader election two must never run side by side, not even while the number changes.
      { replicas: replicasOf(values), strategy: { type: 'Recreate' } },
    ),
  ];
}

/** The command line of the scheduler. */
export function schedulerArguments(values: ControlPlane, directory = CONFIG): string[] {
  const file = (name: string) => `${directory}/${name}`;
  return [
    `--secure-port=${PORT}`,
    `--tls-cert-file=${file('tls.crt')}`,
    `--tls-private-key-file=${file('tls.key')}`,
    `--kubeconfig=${file('kubeconfig')}`,
    `--authentication-kubeconfig=${file('kubeconfig')}`,
    `--authorization-kubeconfig=${file('kubeconfig')}`,
    `--leader-elect=${replicasOf(values) > 1}`,
    '--profiling=false',
  ];
}

/** The files that schedulerArguments names. */
export function schedulerFiles(values: ControlPlane, pki: PKIData): Record<string, string> {
  const serving = keyPair(pki, 'kube-scheduler-serving');
  return {
    kubeconfig: clientKubeconfig(values, pki, keyPair(pki, 'kube-scheduler'), 'system:kube-scheduler'),
    'tls.crt': serving.cert,
    'tls.key': serving.key,
  };
}

const replicasOf = (values: ControlPlane): number => Math.min(values.replicas, 2);
