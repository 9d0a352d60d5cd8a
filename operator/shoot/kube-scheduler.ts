import type { KubeObject } from '../api/meta.ts';
import { COMPONENTS } from '../api/names.ts';
import { clientKubeconfig } from './kubeconfigs.ts';
import { keyPair, type PKIData } from './pki.ts';
import { singletonManifests, singletonReplicas } from './singleton.ts';
import type { ControlPlane } from './values.ts';

const CONFIG = '/etc/kubernetes';
const PORT = 10259;
const KUBECONFIG = 'kubeconfig';
const CONFIGURATION = 'configuration.json';
/**
 * A pod that was tried while there was no node at all is tried again at growing intervals, whatever nodes come meanwhile. By themselves they
 * grow to 10 s: so long would a pod wait beside the first node of a cluster that wakes, or that was made for it. No less is accepted.
 */
const LONGEST_BACKOFF_SECONDS = 1;

/** The scheduler: a Secret and a Deployment. */
export const kubeScheduler = (values: ControlPlane, pki: PKIData): KubeObject[] =>
  singletonManifests(values, {
    name: COMPONENTS.scheduler,
    args: schedulerArguments(values),
    files: schedulerFiles(values, pki),
    mountPath: CONFIG,
    port: PORT,
    ready: '/readyz',
    live: '/livez',
  });

/** The command line of the scheduler. */
function schedulerArguments(values: ControlPlane, directory = CONFIG): string[] {
  const file = (name: string) => `${directory}/${name}`;
  return [
    `--secure-port=${PORT}`,
    `--tls-cert-file=${file('tls.crt')}`,
    `--tls-private-key-file=${file('tls.key')}`,
    `--config=${file(CONFIGURATION)}`,
    `--authentication-kubeconfig=${file(KUBECONFIG)}`,
    `--authorization-kubeconfig=${file(KUBECONFIG)}`,
    `--leader-elect=${singletonReplicas(values) > 1}`,
  ];
}

/** What has no flag. @param kubeconfig the file's path, where the scheduler runs */
export const schedulerConfiguration = (kubeconfig: string): object => ({
  apiVersion: 'kubescheduler.config.k8s.io/v1',
  kind: 'KubeSchedulerConfiguration',
  clientConnection: { kubeconfig },
  enableProfiling: false,
  podMaxBackoffSeconds: LONGEST_BACKOFF_SECONDS,
});

/** The files that schedulerArguments names. */
function schedulerFiles(values: ControlPlane, pki: PKIData): Record<string, string> {
  const serving = keyPair(pki, 'kube-scheduler-serving');
  return {
    [KUBECONFIG]: clientKubeconfig(values, pki, keyPair(pki, 'kube-scheduler'), 'system:kube-scheduler'),
    [CONFIGURATION]: JSON.stringify(schedulerConfiguration(`${CONFIG}/${KUBECONFIG}`)),
    'tls.crt': serving.cert,
    'tls.key': serving.key,
  };
}
