import { loadAll } from 'js-yaml';
import { ADDONS_READY } from '../../../operator/api/conditions.ts';
import { API_VERSION } from '../../../operator/api/group.ts';
import { installManifests } from '../../../operator/api/install.ts';
import { COMPONENTS, technicalID } from '../../../operator/api/names.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';
import { machineStorageClass } from '../../../operator/shoot/machine-volumes.ts';
import { adminAccess, viewerAccess } from '../../../operator/shoot/system-components.ts';
import { pagesOf, readPage, readRepositoryFile } from '../pages.ts';
import { manifestsIn } from '../yaml-of-pages.ts';

/** What a page leaves to its reader. */
export const PLACEHOLDERS: Readonly<Record<string, string>> = { NAME: 'demo', NAMESPACE: 'default' };
/** Of the garden's API server: the machine on which pods seem to run, whose kubelet the test stands in for. */
export const NODE = 'node';

const OPERATOR = { namespace: 'coppice-system', name: 'coppice-operator' };
const METRICS = { apiVersion: 'metrics.k8s.io/v1beta1', timestamp: '2026-01-01T00:00:00Z', window: '15s' };
const USAGE = { cpu: '10m', memory: '10Mi' };

const manifests = (path: string): KubeObject[] => loadAll(readRepositoryFile(path)) as KubeObject[];
const namespaced = ({ metadata, ...object }: KubeObject, namespace: string, name = metadata.name): KubeObject =>
  ({ ...object, metadata: { ...metadata, name, namespace } }) as KubeObject;
const object = (apiVersion: string, kind: string, metadata: KubeObject['metadata'], more: object = {}): KubeObject =>
  ({ apiVersion, kind, metadata, ...more }) as KubeObject;

const conditions = (...types: string[]) => ({
  // Of whatever generation a page makes.
  observedGeneration: 1000,
  conditions: types.map((type) => ({
    ...{ type, status: 'True', reason: 'AsItShouldBe', message: 'as it should be' },
    lastTransitionTime: '2026-01-01T00:00:00Z',
  })),
});
const seed = (name: string): KubeObject =>
  object(
    API_VERSION,
    'Seed',
    { name },
    {
      spec: { ...manifests('examples/seed.yaml')[0]!.spec },
      status: conditions('Ready', 'BackupBucketsReady'),
    },
  );

/** The Shoot of a WorkerCluster, as the operator makes it. */
const shootOf = ({ metadata: { name, namespace = 'default' } }: KubeObject): KubeObject =>
  object(
    API_VERSION,
    'Shoot',
    { name, namespace },
    {
      spec: {
        cloudProfile: { kind: 'CloudProfile', name: 'local' },
        region: 'local',
        provider: { type: 'local', workers: [{ name: 'a', machine: { type: 'local' }, minimum: 1, maximum: 1 }] },
        kubernetes: { version: '1.36.3' },
      },
      status: { seedName: 'local', technicalID: technicalID(namespace, name) },
    },
  );

/** A Deployment, and a pod of it that runs. */
function deployed(namespace: string, name: string, container: string): KubeObject[] {
  const labels = { app: name };
  const spec = { containers: [{ name: container, image: container }] };
  const selector = { matchLabels: labels };
  const started = { name: container, image: '', imageID: '', ready: true, restartCount: 1 };
  return [
    object(
      'apps/v1',
      'Deployment',
      { name, namespace },
      { spec: { selector, template: { metadata: { labels }, spec } } },
    ),
    object(
      'v1',
      'Pod',
      { name, namespace, labels },
      {
        spec: { ...spec, nodeName: NODE },
        status: { phase: 'Running', containerStatuses: [started] },
      },
    ),
  ];
}

/** A kind of the metrics API, which metrics-server serves in a cluster. */
const metricsKind = (kind: string, plural: string, scope: 'Cluster' | 'Namespaced'): KubeObject => {
  const openAPIV3Schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const annotations = { 'api-approved.kubernetes.io': 'unapproved, in place of metrics-server' };
  return object(
    'apiextensions.k8s.io/v1',
    'CustomResourceDefinition',
    { name: `${plural}.metrics.k8s.io`, annotations },
    {
      spec: {
        ...{ group: 'metrics.k8s.io', scope, names: { kind, plural } },
        versions: [{ name: 'v1beta1', served: true, storage: true, schema: { openAPIV3Schema } }],
      },
    },
  );
};

/** Kinds, roles and policies of a garden. */
export const KINDS_AND_ROLES: readonly KubeObject[] = [
  ...installManifests(),
  ...pagesOf('operator/garden/daemon/cluster-inventory/*.yaml', 'test/fixtures/keda/*.yaml').flatMap(manifests),
  metricsKind('NodeMetrics', 'nodes', 'Cluster'),
  metricsKind('PodMetrics', 'pods', 'Namespaced'),
  ...adminAccess(),
  ...viewerAccess(),
];

/** What each page finds in the garden, which is its cluster `demo` as well. @param endpoint URL of its API server */
export function garden(endpoint: string): KubeObject[] {
  const [demo] = manifests('examples/local.yaml');
  const cluster = namespaced(demo!, 'default');
  const mesh = { clusterID: 1, clusterName: 'default--demo', mesh: 'default' };
  const networking = { ...mesh, pods: '100.64.0.0/18', services: '100.64.64.0/20' };
  const status = { mode: 'Hosted', endpoint, networking, ...conditions('Ready', ADDONS_READY) };
  return [
    ...pagesOf('profiles/*.yaml').flatMap(manifests),
    ...machineStorageClass([]),
    ...['eu', 'local'].map(seed),
    { ...cluster, status } as KubeObject,
    shootOf(cluster),
  ];
}

const seedNamespace = technicalID('default', 'demo');
const tenants = technicalID('team-a', 'demo');
const [policy] = manifests('examples/burst/policy.yaml');

/** What else a page takes for granted, or has told its reader to make. */
const GIVEN: Readonly<Record<string, readonly KubeObject[]>> = {
  alerts: [
    ...deployed(OPERATOR.namespace, OPERATOR.name, 'operator'),
    object('coordination.k8s.io/v1', 'Lease', OPERATOR, { spec: { holderIdentity: 'operator' } }),
    object(METRICS.apiVersion, 'PodMetrics', OPERATOR, {
      ...METRICS,
      containers: [{ name: 'operator', usage: USAGE }],
    }),
    ...manifests('examples/hubs/karmada.yaml'),
    namespaced(policy!, 'default', 'demo'),
    seed('demo'),
  ],
  apis: [object(METRICS.apiVersion, 'NodeMetrics', { name: NODE }, { ...METRICS, usage: USAGE })],
  backups: [object('v1', 'Secret', { name: 'pki', namespace: seedNamespace })],
  burst: manifests('examples/hubs/karmada.yaml'),
  'self-managed': [
    object(
      'v1',
      'ConfigMap',
      { name: 'kubeadm-config', namespace: 'kube-system' },
      {
        data: { ClusterConfiguration: 'encryption-provider-config: /etc/kubernetes/encryption.json' },
      },
    ),
  ],
  tenants: deployed(tenants, COMPONENTS.apiServer, COMPONENTS.apiServer),
};

/** Namespaces that exist before the first command, where neither the page nor what it is given makes them. */
const NAMESPACES: Readonly<Record<string, readonly string[]>> = {
  adopt: ['shop'],
  attach: ['shop'],
  burst: ['shop'],
  uninstall: ['team-a'],
};

/** What a page needs besides the garden: what it takes for granted, the manifests that it shows, and their namespaces. */
export function givenTo(path: string): KubeObject[] {
  const name = path.replace(/^.*\/|\.md$/g, '');
  const shown = manifestsIn(readPage(path), { parts: false }).map(({ object }) => object);
  const objects = [
    ...(GIVEN[name] ?? []),
    ...shown,
    ...shown.filter(({ kind }) => kind === 'WorkerCluster').map(shootOf),
  ];
  const namespaces = new Set([
    ...(NAMESPACES[name] ?? []),
    ...objects.map(({ metadata }) => metadata.namespace).filter((one) => one !== undefined),
  ]);
  return [
    ...[...namespaces]
      .filter((one) => !/^(default|kube-)/.test(one))
      .map((one) => object('v1', 'Namespace', { name: one })),
    ...objects,
  ];
}

/** Files that a page names and its reader has. @param kubeconfig of the garden */
export const filesOfReader = (kubeconfig: string): Readonly<Record<string, string>> => ({
  'eu.yaml': kubeconfig,
  'theirs.yaml': kubeconfig,
  'demo.yaml': kubeconfig,
  'seed.yaml': readRepositoryFile('examples/seed.yaml'),
  'quota.yaml': readRepositoryFile('examples/quota.yaml').replaceAll('namespace: shop', 'namespace: team-a'),
  'cluster.yaml': JSON.stringify(manifestsIn(readPage('docs/tasks/autoscale-pools.md'))[0]!.object),
});
