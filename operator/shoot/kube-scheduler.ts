import type { KubeObject } from '../api/meta.ts';
import { COMPONENTS } from '../api/names.ts';
import { clientKubeconfig } from './kubeconfigs.ts';
import { keyPair, type PKIData } from './pki.ts';
import { singleton, singletonReplicas } from './singleton.ts';
import type { ControlPlane } from './values.ts';

const CONFIG = '/etc/kubernetes';
const PORT = 10259;

/** The scheduler: a Secret and a Deployment. */
export const kubeScheduler = (values: ControlPlane, pki: PKIData): KubeObject[] =>
  singleton(values, {
    name: COMPONENTS.scheduler,
    args: schedulerArguments(values),
    files: schedulerFiles(values, pki),
    mountPath: CONFIG,
    port: PORT,
    ready: '/readyz',
    live: '/livez',
  });

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
    `--leader-elect=${singletonReplicas(values) > 1}`,
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
