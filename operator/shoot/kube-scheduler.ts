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
 * A pod that failed to schedule while there was no node is retried with backoff, even when nodes come. The default
 * maximum is 10 s: a pod would wait that long beside the first node of a cluster that wakes or was created for it. One
 * second is the minimum permitted.
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

/** Configuration without flags. @param kubeconfig path of the kubeconfig where the scheduler runs */
export const schedulerConfiguration = (kubeconfig: string): object => ({
  apiVersion: 'kubescheduler.config.k8s.io/v1',
  kind: 'KubeSchedulerConfiguration',
  clientConnection: { kubeconfig },
  enableProfiling: false,
  podMaxBackoffSeconds: LONGEST_BACKOFF_SECONDS,
});

/** Files named by schedulerArguments. */
function schedulerFiles(values: ControlPlane, pki: PKIData): Record<string, string> {
  const serving = keyPair(pki, 'kube-scheduler-serving');
  return {
    [KUBECONFIG]: clientKubeconfig(values, pki, keyPair(pki, 'kube-scheduler'), 'system:kube-scheduler'),
    [CONFIGURATION]: JSON.stringify(schedulerConfiguration(`${CONFIG}/${KUBECONFIG}`)),
    'tls.crt': serving.cert,
    'tls.key': serving.key,
  };
}
