import { ANNOTATIONS, GROUP } from '../api/group.ts';
import type { KubeObject } from '../api/meta.ts';
import { asNobody, UNPRIVILEGED } from '../kube/pod-security.ts';
import { filesChecksum, SYSTEM_POD } from './pod.ts';
import { LOCAL_PATH_IMAGE } from './versions.ts';

/** StorageClass whose volumes are folders on machines. */
const MACHINE_STORAGE_CLASS = 'coppice-local';
const NAME = 'coppice-local-path';
const ROLE = 'coppice:local-path-provisioner';
/** Not the name of a stock local-path-provisioner: both would create each volume. */
const PROVISIONER = `${GROUP}/local-path`;
const DEFAULT_CLASS = 'storageclass.kubernetes.io/is-default-class';
const FILES = '/etc/local-path';
const namespace = 'kube-system';
const labels = { 'k8s-app': NAME };

interface StorageClass {
  metadata: { name: string; annotations?: Record<string, string> };
}

/** The provider's MachineVolumes, input of the objects below. */
interface MachineVolumeSettings {
  readonly folder: string;
  readonly helper: { readonly image: string; readonly folders: readonly string[] };
}

/**
 * The StorageClass, or nothing where the cluster has it: changes by people stay. It is the default unless another one
 * is.
 * @param existing all StorageClasses of the cluster
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
          // The pod that uses a missing folder reports it; type hostPath would recreate the folder empty.
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

/** The provisioner's rights and files. */
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
        // It returns a claim to the scheduler when the chosen machine is gone before the volume exists.
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

/** The provisioner. One replica suffices: existing volumes work while it is down. */
export function provisionerManifests(settings: MachineVolumeSettings): KubeObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: NAME, namespace, labels },
    spec: {
      replicas: 1,
      revisionHistoryLimit: 1,
      // Without leader election two would create each volume twice.
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

/** The commands on the machine: create or remove a folder. */
const filesOf = ({ folder, helper }: MachineVolumeSettings): Record<string, string> => ({
  'config.json': JSON.stringify({ nodePathMap: [{ node: 'DEFAULT_PATH_FOR_NON_LISTED_NODES', paths: [folder] }] }),
  // For pods of any user.
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
          // The provisioner collects logs of the container of this name.
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
