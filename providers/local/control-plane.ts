import { readFileSync } from 'node:fs';
import { ANNOTATIONS, FIELD_MANAGER, LABELS, ROLES } from '../../operator/api/group.ts';
import type { KubeObject } from '../../operator/api/meta.ts';
import { controlPlaneMachineName, machineSetName, poolSecretName } from '../../operator/api/names.ts';
import { PODS, type Pod, PVCS, SECRETS, STATEFULSETS, type StatefulSet } from '../../operator/kube/resources.ts';
import { LEAF_DAYS } from '../../operator/pki/certificates.ts';
import { applyIfChanged, ignoreGone } from '../apply.ts';
import type { ControlPlaneBootstrap, ControlPlaneMachines, Pool, ProviderContext } from '../contract.ts';
import { environmentFile } from '../nodes.ts';
import { machineOf } from './machine.ts';
import { type MachineFiles, machineFiles } from './machine-files.ts';
import { controlPlaneMachineImage } from './machine-image.ts';
import { keyOfPath, machineSpec, type PodContext } from './machine-pod.ts';

const SCRIPT = readFileSync(new URL('./control-plane.sh', import.meta.url), 'utf8');
/** The claim of machine N is `var-<machine>`. */
const VOLUME = 'var';
const API_SERVER_PORT = 6443;
/** Additional kubelet settings that kubeadm expects. */
const KUBELET = { staticPodPath: '/etc/kubernetes/manifests', healthzPort: 10248 };

/** Label by which the API server's Service selects machines. */
const SERVED = { label: 'app', value: 'kube-apiserver' };

/** Revision of the encryption keys that a machine requires to start. Absent: never rotated. */
const WANTED_REVISION = 'WANTED_ENCRYPTION_REVISION';

const isOutdated: ControlPlaneMachines['isOutdated'] = (ctx, pod) =>
  isOfOtherVersion(ctx, pod) || hasOtherKeys(ctx, pod);

/** A custom image has no known version. */
const isOfOtherVersion: ControlPlaneMachines['isOutdated'] = ({ kubernetesVersion, machineImage }, { spec }) =>
  machineImage === undefined &&
  !spec.containers.some(({ image }) => image === controlPlaneMachineImage(kubernetesVersion));

const hasOtherKeys: ControlPlaneMachines['isOutdated'] = ({ encryptionRevision = 0 }, { spec }) =>
  !spec.containers.some(
    ({ env = [] }) => Number(env.find(({ name }) => name === WANTED_REVISION)?.value ?? 0) === encryptionRevision,
  );

/** Control plane machines are pods of a StatefulSet, each with a volume at /var. */
export const controlPlaneMachines: ControlPlaneMachines = {
  async observe(ctx, pool) {
    const selection = { namespace: ctx.namespace, labelSelector: selectorText(ctx, pool) };
    const [set, pods, claims] = await Promise.all([
      ctx.seed.getOrUndefined<StatefulSet>(STATEFULSETS, machineSetName(pool), ctx.namespace),
      ctx.seed.list<Pod>(PODS, selection),
      ctx.seed.list<KubeObject>(PVCS, selection),
    ]);
    return {
      asked: set?.spec.replicas ?? 0,
      machines: pods.items.map((pod) => ({
        ...machineOf(pod),
        ...(isOutdated(ctx, pod) && { outdated: true }),
        ...(pod.metadata.labels?.[SERVED.label] !== SERVED.value && { closed: true as const }),
      })),
      volumes: claims.items.map(({ metadata: { name, uid = '' } }) => ({
        ordinal: Number(name.slice(name.lastIndexOf('-') + 1)),
        uid,
      })),
    };
  },

  async reconcile(ctx, pool, bootstrap) {
    const machine = machineFiles(ctx, pool, KUBELET);
    const files = controlPlaneFiles(ctx, machine, bootstrap, await ctx.kubeProxyKubeconfig());
    await applyIfChanged(ctx.seed, controlPlaneSecret(ctx, pool, files));
    await applyIfChanged(ctx.seed, controlPlaneStatefulSet(ctx, pool, Object.keys(files), machine.fingerprint));
  },

  async delete(ctx, pool) {
    const selection = { namespace: ctx.namespace, labelSelector: selectorText(ctx, pool) };
    await ctx.seed.deleteCollection(STATEFULSETS, { ...selection, propagationPolicy: 'Background' });
    await ctx.seed.deleteCollection(SECRETS, selection);
    await ctx.seed.deleteCollection(PVCS, selection);
  },

  isOutdated,

  async close(ctx, pool, ordinal) {
    const name = controlPlaneMachineName(pool, ordinal);
    await ignoreGone(
      ctx.seed.mergePatch(PODS, name, ctx.namespace, { metadata: { labels: { [SERVED.label]: null } } }),
    );
  },

  async replace(ctx, pool, ordinal) {
    const name = controlPlaneMachineName(pool, ordinal);
    const pod = await ctx.seed.getOrUndefined<Pod>(PODS, name, ctx.namespace);
    if (!pod || pod.metadata.deletionTimestamp || !isOutdated(ctx, pod)) return;
    await ctx.seed.delete(PODS, name, ctx.namespace, { preconditions: { uid: pod.metadata.uid } });
  },

  async removeVolume(ctx, pool, ordinal) {
    await ctx.seed.delete(PVCS, `${VOLUME}-${controlPlaneMachineName(pool, ordinal)}`, ctx.namespace);
  },
};

/** Files of a control plane machine, by path below CONFIG_FOLDER. Pure. */
const controlPlaneFiles = (
  { encryptionRevision = 0 }: Pick<ProviderContext, 'encryptionRevision'>,
  { files }: MachineFiles,
  { addresses, init, join, keys, mayInitialise, noted }: ControlPlaneBootstrap,
  kubeProxy: string,
): Record<string, string> => ({
  ...files,
  'kube-proxy.kubeconfig': kubeProxy,
  'control-plane.sh': SCRIPT,
  'control-plane.env': environmentFile({
    MEMBER_ADDRESSES: addresses.join(' '),
    MAY_INITIALISE: mayInitialise ? 'yes' : 'no',
    NOTED: noted.join(' '),
    ENCRYPTION_REVISION: String(encryptionRevision),
    CERTIFICATE_DAYS: String(LEAF_DAYS),
  }),
  'kubeadm-init.yaml': init,
  'kubeadm-join.yaml': join,
  // File names are Secret keys, so they must be unique.
  ...Object.fromEntries(Object.entries(keys).map(([path, text]) => [`authorities/${path.replaceAll('/', '-')}`, text])),
});

/** Secret with the files. */
const controlPlaneSecret = (ctx: PodContext, pool: Pool, files: Record<string, string>): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: poolSecretName(pool.name), namespace: ctx.namespace, labels: labelsOf(ctx, pool.name) },
  type: 'Opaque',
  data: Object.fromEntries(
    Object.entries(files).map(([path, text]) => [keyOfPath(path), Buffer.from(text).toString('base64')]),
  ),
});

type ControlPlaneContext = PodContext & Pick<ProviderContext, 'encryptionRevision' | 'controlPlanePriority'>;

/** The StatefulSet; each pod is a machine with the name of its node. */
function controlPlaneStatefulSet(
  ctx: ControlPlaneContext,
  pool: Pool,
  paths: string[],
  fingerprint: string,
): KubeObject {
  const labels = labelsOf(ctx, pool.name);
  const name = machineSetName(pool.name);
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name, namespace: ctx.namespace, labels },
    spec: {
      replicas: pool.count,
      serviceName: name,
      podManagementPolicy: 'Parallel',
      revisionHistoryLimit: 1,
      // An etcd member must not be replaced for a changed file: new files apply when it is recreated.
      updateStrategy: { type: 'OnDelete' },
      selector: { matchLabels: selectorOf(ctx, pool.name) },
      template: {
        metadata: {
          labels: { ...labels, [SERVED.label]: SERVED.value },
          annotations: { [ANNOTATIONS.checksum]: fingerprint },
        },
        spec: machineSpec(ctx, pool, paths, {
          image: controlPlaneMachineImage(ctx.kubernetesVersion),
          varClaim: VOLUME,
          ...(ctx.controlPlanePriority && { priorityClassName: ctx.controlPlanePriority }),
          // Removes a machine that does not serve from the Service, without restarting it.
          container: {
            ...(ctx.encryptionRevision && {
              env: [{ name: WANTED_REVISION, value: String(ctx.encryptionRevision) }],
            }),
            readinessProbe: {
              httpGet: { path: '/readyz', port: API_SERVER_PORT, scheme: 'HTTPS' },
              periodSeconds: 2,
              timeoutSeconds: 5,
              failureThreshold: 2,
            },
          },
        }),
      },
      volumeClaimTemplates: [
        {
          apiVersion: 'v1',
          kind: 'PersistentVolumeClaim',
          metadata: { name: VOLUME, labels },
          spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '20Gi' } } },
        },
      ],
    },
  };
}

type Names = Pick<ProviderContext, 'shootName' | 'shootNamespace'>;

const selectorOf = (ctx: Names, pool: string): Record<string, string> => ({
  [LABELS.shoot]: ctx.shootName,
  [LABELS.pool]: pool,
  [LABELS.role]: ROLES.controlPlaneMachine,
});

const selectorText = (ctx: Names, pool: string): string =>
  Object.entries(selectorOf(ctx, pool))
    .map(([key, value]) => `${key}=${value}`)
    .join(',');

const labelsOf = (ctx: Names, pool: string): Record<string, string> => ({
  ...selectorOf(ctx, pool),
  [LABELS.shootNamespace]: ctx.shootNamespace,
  [LABELS.managedBy]: FIELD_MANAGER,
});
