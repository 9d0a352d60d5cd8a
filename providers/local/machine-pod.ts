import { ANNOTATIONS, FIELD_MANAGER, LABELS, ROLES } from '../../operator/api/group.ts';
import type { KubeObject } from '../../operator/api/meta.ts';
import { machineSetName, poolSecretName, shortHash } from '../../operator/api/names.ts';
import { formatBytes } from '../../operator/api/quantity.ts';
import type { ReplicaSet } from '../../operator/kube/resources.ts';
import type { Pool, ProviderContext } from '../contract.ts';
import { capacityOf } from '../machine-types.ts';
import type { Marks } from '../nodes.ts';
import { CONFIG_FOLDER, type MachineContext, type MachineFiles } from './machine-files.ts';
import { machineImage } from './machine-image.ts';

/** Inputs of a pool's objects in the seed. */
export type PodContext = MachineContext & Pick<ProviderContext, 'namespace' | 'shootName' | 'shootNamespace'>;

/** Annotation of a pool's ReplicaSet: labels and taints last applied to its nodes. */
export const MARKS_ANNOTATION = 'multi-cluster.demo.io/node-marks';

/** Termination grace period of a machine, seconds; its entry script needs about one. */
const GRACE_SECONDS = 5;

/** Labels of everything that belongs to the pool's machines. */
const poolLabels = (ctx: Pick<PodContext, 'shootName' | 'shootNamespace'>, pool: string): Record<string, string> => ({
  [LABELS.shoot]: ctx.shootName,
  [LABELS.shootNamespace]: ctx.shootNamespace,
  [LABELS.pool]: pool,
  [LABELS.role]: ROLES.machine,
  [LABELS.managedBy]: FIELD_MANAGER,
});

/** Secret with all files of the pool's machines. */
export function poolSecret(
  ctx: PodContext,
  pool: Pool,
  { files }: MachineFiles,
  kubeconfigs: { bootstrap: string; kubeProxy: string },
): KubeObject {
  const all = {
    ...files,
    'bootstrap.kubeconfig': kubeconfigs.bootstrap,
    'kube-proxy.kubeconfig': kubeconfigs.kubeProxy,
  };
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: poolSecretName(pool.name), namespace: ctx.namespace, labels: poolLabels(ctx, pool.name) },
    type: 'Opaque',
    data: Object.fromEntries(
      Object.entries(all).map(([path, text]) => [keyOfPath(path), Buffer.from(text).toString('base64')]),
    ),
  };
}

/** Secret keys may not contain slashes. */
export const keyOfPath = (path: string): string => path.split('/').at(-1)!;

/**
 * ReplicaSet of the pool; each pod is a machine with the name of its node. Not a Deployment, which would replace
 * outdated machines without a drain.
 */
export function poolReplicaSet(
  ctx: PodContext,
  pool: Pool,
  { files, fingerprint }: MachineFiles,
  marks: Marks,
): ReplicaSet {
  const labels = poolLabels(ctx, pool.name);
  const machine = machineSpec(ctx, pool, [...Object.keys(files), 'bootstrap.kubeconfig', 'kube-proxy.kubeconfig']);
  const description = shortHash(JSON.stringify([fingerprint, machine]));
  const selector = { [LABELS.shoot]: ctx.shootName, [LABELS.pool]: pool.name, [LABELS.role]: ROLES.machine };
  return {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: {
      name: machineSetName(pool.name),
      namespace: ctx.namespace,
      labels,
      annotations: { [MARKS_ANNOTATION]: JSON.stringify(marks) },
    },
    spec: {
      replicas: pool.count,
      selector: { matchLabels: selector },
      template: { metadata: { labels, annotations: { [ANNOTATIONS.checksum]: description } }, spec: machine },
    },
  };
}

/** Differences of a control plane machine from a worker machine. */
interface MachineVariant {
  image?: string;
  /** PriorityClass of the pod. */
  priorityClassName?: string;
  /** Further fields of its container. */
  container?: object;
  /** PersistentVolumeClaim for /var; absent: an emptyDir. */
  varClaim?: string;
}

/** Pod spec of a machine. @param paths of all files in its Secret */
export function machineSpec(ctx: PodContext, pool: Pool, paths: string[], variant: MachineVariant = {}): object {
  const { bytes } = capacityOf(ctx.profile, pool.machineType);
  const folders = ctx.machineImage ? ['/lib/modules'] : HOST_FOLDERS;
  const files = [...paths].sort();
  return {
    automountServiceAccountToken: false,
    // The seed may have no DNS, and a machine reaches mirror and API server by address.
    dnsPolicy: 'Default',
    enableServiceLinks: false,
    terminationGracePeriodSeconds: GRACE_SECONDS,
    ...(variant.priorityClassName && { priorityClassName: variant.priorityClassName }),
    containers: [
      {
        name: 'machine',
        // TODO(kindest/node): as machineImage on a foreign seed it has its own containerd, runc, CNI plugins and
        // kubelet; the same entry script replaces its systemd. Untested. Its pod network needs machines in one layer 2,
        // which kind's pod network does not provide.
        image: ctx.machineImage ?? variant.image ?? machineImage(ctx.kubernetesVersion),
        imagePullPolicy: 'IfNotPresent',
        command: ['bash', `${CONFIG_FOLDER}/machine.sh`],
        // Requests are small, so that a small seed carries many machines. No CPU limit: under cgroup v1 pods inside
        // could then not have higher limits, as on a real machine. The machine type limits memory.
        resources: {
          requests: { cpu: '20m', memory: '64Mi' },
          limits: { memory: formatBytes(bytes) },
        },
        securityContext: { privileged: true },
        volumeMounts: [
          { name: 'config', mountPath: CONFIG_FOLDER, readOnly: true },
          { name: variant.varClaim ?? 'var', mountPath: '/var' },
          { name: 'run', mountPath: '/run' },
          ...(ctx.machineImage ? [] : [{ name: RUNTIME_VOLUME, mountPath: MACHINE_RUNTIME, readOnly: true }]),
          ...hostFolderMounts(folders),
        ],
        ...variant.container,
      },
    ],
    volumes: [
      {
        name: 'config',
        secret: {
          secretName: poolSecretName(pool.name),
          defaultMode: 0o400,
          items: files.map((path) => ({ key: keyOfPath(path), path })),
        },
      },
      ...(variant.varClaim ? [] : [{ name: 'var', emptyDir: {} }]),
      { name: 'run', emptyDir: { medium: 'Memory' } },
      ...(ctx.machineImage ? [] : [{ name: RUNTIME_VOLUME, hostPath: { path: RUNTIME_FOLDER } }]),
      ...hostFolderVolumes(folders),
    ],
  };
}

/**
 * Folder of the seed node with its own containerd, shim and ctr: machines use the same files, which are thus in memory
 * once and in no image. Mounted at MACHINE_RUNTIME, which is in machine.sh's PATH.
 */
export const RUNTIME_FOLDER = '/run/coppice/runtime';
const MACHINE_RUNTIME = '/opt/coppice/runtime';
const RUNTIME_VOLUME = 'runtime';

/** Folders of the seed node for the scratch image: programs, libraries and CA certificates. */
export const HOST_FOLDERS: readonly string[] = [
  '/usr',
  '/bin',
  '/sbin',
  '/lib',
  '/lib64',
  '/etc/alternatives',
  '/etc/ssl',
];

/** Volume mounts of the seed node's folders. */
export const hostFolderMounts = (folders: readonly string[]): object[] =>
  folders.map((path) => ({ name: volumeName(path), mountPath: path, readOnly: true }));

/** The volumes for these mounts. */
export const hostFolderVolumes = (folders: readonly string[]): object[] =>
  folders.map((path) => ({ name: volumeName(path), hostPath: { path } }));

const volumeName = (path: string): string => `host${path.replaceAll('/', '-')}`;
