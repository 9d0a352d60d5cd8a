import { addressRange } from '../api/address-range.ts';
import type { KubeObject } from '../api/meta.ts';
import { COMPONENTS } from '../api/names.ts';
import { LEAF_DAYS } from '../pki/certificates.ts';
import { clientKubeconfig } from './kubeconfigs.ts';
import { keyPair, type PKIData } from './pki.ts';
import { singletonManifests, singletonReplicas } from './singleton.ts';
import type { ControlPlane } from './values.ts';

const CONFIG = '/etc/kubernetes';
const PORT = 10257;

/** Cloud provider controllers, which a hosted cluster lacks, and storage version migrations. */
const DISABLED_CONTROLLERS = [
  'cloud-node-lifecycle-controller',
  'node-route-controller',
  'service-lb-controller',
  'storage-version-migrator-controller',
  'storageversion-garbage-collector-controller',
  'legacy-serviceaccount-token-cleaner-controller',
];

/** The controller manager: a Secret and a Deployment. */
export const kubeControllerManager = (values: ControlPlane, pki: PKIData): KubeObject[] =>
  singletonManifests(values, {
    name: COMPONENTS.controllerManager,
    args: controllerManagerArguments(values),
    files: controllerManagerFiles(values, pki),
    mountPath: CONFIG,
    port: PORT,
    ready: '/healthz',
    live: '/healthz',
  });

function controllerManagerArguments(values: ControlPlane, directory = CONFIG): string[] {
  const file = (name: string) => `${directory}/${name}`;
  return [
    `--secure-port=${PORT}`,
    `--tls-cert-file=${file('tls.crt')}`,
    `--tls-private-key-file=${file('tls.key')}`,
    `--kubeconfig=${file('kubeconfig')}`,
    `--authentication-kubeconfig=${file('kubeconfig')}`,
    `--authorization-kubeconfig=${file('kubeconfig')}`,
    // It may start before the API server has created the role for the lookup, and would exit.
    '--authentication-tolerate-lookup-failure=true',
    `--leader-elect=${singletonReplicas(values) > 1}`,
    `--controllers=*,token-cleaner-controller,${DISABLED_CONTROLLERS.map((name) => `-${name}`).join(',')}`,
    '--use-service-account-credentials=true',
    // Before its first controller works it requests the credentials of each three times, about 120 requests: at the
    // default 20 per second nodes waited five seconds for their certificates.
    '--kube-api-qps=100',
    '--kube-api-burst=200',
    `--service-account-private-key-file=${file('sa.key')}`,
    `--root-ca-file=${file('ca.crt')}`,
    `--cluster-signing-cert-file=${file('ca.crt')}`,
    `--cluster-signing-key-file=${file('ca.key')}`,
    // Kubelets renew their certificates themselves, at the latest after nine tenths of the life.
    `--cluster-signing-duration=${LEAF_DAYS * 24}h`,
    '--allocate-node-cidrs=true',
    `--cluster-cidr=${values.networks.pods}`,
    `--service-cluster-ip-range=${values.networks.services}`,
    `--node-cidr-mask-size=${nodeMaskSize(values.networks.pods)}`,
    `--cluster-name=${values.shoot.name}`,
    '--profiling=false',
  ];
}

/** Files named by controllerManagerArguments. */
function controllerManagerFiles(values: ControlPlane, pki: PKIData): Record<string, string> {
  const serving = keyPair(pki, 'kube-controller-manager-serving');
  const ca = keyPair(pki, 'ca');
  return {
    kubeconfig: clientKubeconfig(
      values,
      pki,
      keyPair(pki, 'kube-controller-manager'),
      'system:kube-controller-manager',
    ),
    'tls.crt': serving.cert,
    'tls.key': serving.key,
    'ca.crt': ca.cert,
    'ca.key': ca.key,
    'sa.key': pki['sa.key']!,
  };
}

/** Prefix length of each node's pod range: /24 (or /64), or half of the pod range where that is smaller. */
export function nodeMaskSize(pods: string): number {
  const range = addressRange(pods);
  return Math.max(range.family === 4 ? 24 : 64, range.prefix + 1);
}
