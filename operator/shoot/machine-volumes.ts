import { ANNOTATIONS, GROUP } from '../api/group.ts';
import type { KubeObject } from '../api/meta.ts';
import { asNobody, UNPRIVILEGED } from '../kube/pod-security.ts';
import { filesChecksum, SYSTEM_POD } from './pod.ts';
import { LOCAL_PATH_IMAGE } from './versions.ts';

/** Name of the StorageClass whose volumes are folders of machines. */
const MACHINE_STORAGE_CLASS = 'coppice-local';
const NAME = 'coppice-local-path';
const ROLE = 'coppice:local-path-provisioner';
/** Not that of local-path-provisioner as others install it: both would make each volume. */
const PROVISIONER = `${GROUP}/local-path`;
const DEFAULT_CLASS = 'storageclass.kubernetes.io/is-default-class';
const FILES = '/etc/local-path';
const namespace = 'kube-system';
const labels = { 'k8s-app': NAME };

interface StorageClass {
  metadata: { name: string; annotations?: Record<string, string> };
}

/** What the objects below are made from: the provider's MachineVolumes. */
interface MachineVolumeSettings {
  readonly folder: string;
  readonly helper: { readonly image: string; readonly folders: readonly string[] };
}

/**
 * The StorageClass, or nothing where the cluster has it: what people have changed of it stays. It is the default unless another one is.
 * @param existing all of the cluster
 */
export function machineStorageClass(existing: readonly StorageClass[]): KubeObject[] {
  if (existing.some(({ metadata }) => metadata.name === MACHINE_STORAGE_CLASS)) return [];
  const isDefault = !existing.some(({ metadata }) => metadata.annotations?.[DEFAULT_CLASS] === 'true');
  return [
    {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: {
        name: MACHINE_STORAGE_CLASS,
        annotations: {
          [DEFAULT_CLASS]: String(isDefault),
          // A folder that has gone is told by the pod that wants it; one of type hostPath would be made anew, empty.
          defaultVolumeType: 'local',
        },
      },
      provisioner: PROVISIONER,
      reclaimPolicy: 'Delete',
      // The scheduler chooses the machine first.
      volumeBindingMode: 'WaitForFirstConsumer',
    },
  ];
}

/** What the provisioner needs: its rights and its files. */
export function provisionerAccess(settings: MachineVolumeSettings): KubeObject[] {
  const role = { apiGroup: 'rbac.authorization.k8s.io' };
  const subjects = [{ kind: 'ServiceAccount', name: NAME, namespace }];
  const read = ['get', 'list', 'watch'];
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: NAME, namespace } },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: ROLE },
      rules: [
        { apiGroups: [''], resources: ['nodes'], verbs: ['get'] },
        // It gives a claim back to the scheduler whose machine went before its volume was made.
        { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: [...read, 'update'] },
        { apiGroups: [''], resources: ['persistentvolumes'], verbs: [...read, 'create', 'delete'] },
        { apiGroups: ['storage.k8s.io'], resources: ['storageclasses'], verbs: read },
        { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
      ],
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: ROLE },
      roleRef: { ...role, kind: 'ClusterRole', name: ROLE },
      subjects,
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { name: ROLE, namespace },
      rules: [
        { apiGroups: [''], resources: ['pods'], verbs: ['get', 'create', 'delete'] },
        { apiGroups: [''], resources: ['pods/log'], verbs: ['get'] },
      ],
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name: ROLE, namespace },
      roleRef: { ...role, kind: 'Role', name: ROLE },
      subjects,
    },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: NAME, namespace, labels }, data: filesOf(settings) },
  ];
}

/** The provisioner. One is enough: while it is away, volumes that are there go on being used. */
export function provisionerManifests(settings: MachineVolumeSettings): KubeObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: NAME, namespace, labels },
    spec: {
      replicas: 1,
      revisionHistoryLimit: 1,
      // It elects no leader: two would make each volume twice.
      strategy: { type: 'Recreate' },
      selector: { matchLabels: labels },
      template: {
        metadata: { labels, annotations: { [ANNOTATIONS.checksum]: filesChecksum(filesOf(settings)) } },
        spec: {
          serviceAccountName: NAME,
          ...SYSTEM_POD,
          securityContext: asNobody(),
          containers: [
            {
              name: NAME,
              image: LOCAL_PATH_IMAGE,
              imagePullPolicy: 'IfNotPresent',
              command: ['/usr/bin/local-path-provisioner'],
              args: [
                'start',
                `--config=${FILES}/config.json`,
                `--helper-pod-file=${FILES}/helperPod.yaml`,
                `--configmap-name=${NAME}`,
                `--namespace=${namespace}`,
                `--provisioner-name=${PROVISIONER}`,
                `--service-account-name=${NAME}`,
              ],
              env: [
                { name: 'GOMAXPROCS', value: '1' },
                { name: 'GOGC', value: '50' },
              ],
              resources: { requests: { cpu: '5m', memory: '40Mi' }, limits: { memory: '170Mi' } },
              securityContext: UNPRIVILEGED,
              volumeMounts: [{ name: 'files', mountPath: FILES, readOnly: true }],
            },
          ],
          volumes: [{ name: 'files', configMap: { name: NAME } }],
        },
      },
    },
  };
}

/** What is run on the machine itself is little: a folder is made, or removed. */
const filesOf = ({ folder, helper }: MachineVolumeSettings): Record<string, string> => ({
  'config.json': JSON.stringify({ nodePathMap: [{ node: 'DEFAULT_PATH_FOR_NON_LISTED_NODES', paths: [folder] }] }),
  // Whatever user a pod runs as.
  setup: 'set -eu\nmkdir -m 0777 -p "$VOL_DIR"\n',
  teardown: 'set -eu\nrm -rf "$VOL_DIR"\n',
  'helperPod.yaml': JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'volume' },
    spec: {
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      dnsPolicy: 'Default',
      terminationGracePeriodSeconds: 0,
      priorityClassName: 'system-node-critical',
      containers: [
        {
          // The provisioner collects the logs of this name.
          name: 'helper-pod',
          image: helper.image,
          imagePullPolicy: 'IfNotPresent',
          resources: { requests: { cpu: '1m', memory: '5Mi' } },
          volumeMounts: helper.folders.map((path) => ({ name: volumeName(path), mountPath: path, readOnly: true })),
        },
      ],
      volumes: helper.folders.map((path) => ({ name: volumeName(path), hostPath: { path } })),
    },
  }),
});

const volumeName = (path: string): string => `machine${path.replaceAll('/', '-')}`;
