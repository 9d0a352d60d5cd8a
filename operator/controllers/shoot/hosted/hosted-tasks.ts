import { COMPONENTS, etcdMemberName } from '../../../api/names.ts';
import { hasServed } from '../../../api/shoot.ts';
import type { Task } from '../../../flow/graph.ts';
import { waitFor } from '../../../kube/informer.ts';
import { hasEnded } from '../../../kube/pods.ts';
import type { Deployment, KubeObject, Pod } from '../../../kube/resources.ts';
import { decodeSecret } from '../../../kube/resources.ts';
import { etcdManifests, notedVolumes } from '../../../shoot/etcd.ts';
import { kubeAPIServer } from '../../../shoot/kube-apiserver.ts';
import { kubeControllerManager } from '../../../shoot/kube-controller-manager.ts';
import { kubeScheduler } from '../../../shoot/kube-scheduler.ts';
import { callsKubeletsAsMaster, PKI_SECRET, type PKIParameters, pkiParameters } from '../../../shoot/pki.ts';
import { NOT_FOR_COMPONENTS } from '../../../shoot/readiness.ts';
import { kubernetesEndpoints } from '../../../shoot/system-components.ts';
import type { ControlPlane } from '../../../shoot/values.ts';
import { connectToShoot } from '../connect.ts';
import type { Operation } from '../operation.ts';
import { asksFor, ROTATE, takeRequest } from '../operation-request.ts';
import { accessTasks } from '../tasks/access-tasks.ts';
import { shootConnection } from '../tasks/apply-inside.ts';
import { because, leasesBlocked, whileLooking } from '../tasks/blocked-inside.ts';
import { encryptionTask } from '../tasks/encryption-task.ts';
import { issueCertificates } from '../tasks/issue-certificates.ts';
import { kubeconfigTask } from '../tasks/kubeconfig-task.ts';
import { machineTasks, nodesReadyTask } from '../tasks/machine-tasks.ts';
import { certificatesOfAddons, metricsServerTask } from '../tasks/metrics-server-task.ts';
import { namespaceTask } from '../tasks/namespace-task.ts';
import { systemComponentsTask, systemReadyTask } from '../tasks/system-components-tasks.ts';
import { tunnelTask } from '../tasks/tunnel-task.ts';
import { volumeTasks } from '../tasks/volume-tasks.ts';
import { IN_SEED, untilServes } from '../until-serves.ts';
import { addressTasks } from './addresses.ts';
import { encryptionWanted, hostedServers } from './encryption.ts';
import { etcdPodsAreKnown, reconcileEtcdMembers, refuseLostMajority } from './etcd-members.ts';
import { etcdSizeAwake } from './hibernation-tasks.ts';

const MINUTE = 60_000;

/** Task graph of create and reconcile. Tasks do nothing when done already. */
export function reconcileTasks(op: Operation): Task[] {
  const { seed, values, provider } = op;
  const ns = values.namespace;
  const apply = async (objects: readonly KubeObject[], signal: AbortSignal) => {
    await Promise.all(objects.map((object) => seed.applier.apply(object, signal)));
  };

  return [
    namespaceTask(op),
    ...addressTasks(op, 'Reserving addresses'),
    {
      id: 'certificates',
      title: 'Issuing certificates',
      after: ['services'],
      expectedMs: 100,
      run: async (signal) => {
        const parameters = { ...pkiParameters(op.values), ...certificatesOfAddons(op), ...earlierKubeletClient(op) };
        await issueCertificates(op, parameters, signal, (pki) => encryptionWanted(op, pki));
        // Remove the annotation after the new key is stored.
        if (asksFor(op.shoot, ROTATE)) await takeRequest(op, signal);
      },
    },
    {
      id: 'etcd',
      title: 'Starting etcd',
      after: ['certificates'],
      expectedMs: 50,
      timeoutMs: 10 * MINUTE,
      run: async (signal) => {
        op.values = { ...op.values, etcd: { ...op.values.etcd, ...observedEtcd(op) } };
        await apply(etcdManifests(op.values, op.pki), signal);
        await refuseLostMajority(op, signal);
      },
    },
    {
      id: 'api-server',
      title: 'Starting the API server',
      after: ['etcd'],
      expectedMs: 50,
      run: (signal) => apply(kubeAPIServer(op.values, op.pki), signal),
    },
    {
      id: 'api-server-serves',
      title: 'Waiting for the API server',
      after: ['api-server'],
      expectedMs: 4500,
      // Includes building the image; its parts have their own limits.
      timeoutMs: 60 * MINUTE,
      run: (signal) => connectToShoot(op, signal),
    },
    {
      id: 'controller-manager',
      title: 'Starting the controller manager',
      // After the API server: before, it would compete for CPU and fail to connect. It waits for readiness itself.
      after: ['api-server-serves'],
      expectedMs: 50,
      run: (signal) => apply(kubeControllerManager(op.values, op.pki), signal),
    },
    ...accessTasks(op),
    {
      id: 'roles',
      title: 'Waiting for the roles of the API server',
      after: ['access'],
      // The trial runs for new clusters only.
      skip: hasServed(op.shoot),
      expectedMs: 1500,
      timeoutMs: 2 * MINUTE,
      run: (signal) => {
        const { client } = shootConnection(op);
        return untilServes({ serves: () => client.ready({ signal, apartFrom: NOT_FOR_COMPONENTS }) }, IN_SEED, signal);
      },
    },
    {
      id: 'scheduler',
      title: 'Starting the scheduler',
      // After the roles: once refused, the scheduler retries only after a second.
      after: ['roles'],
      expectedMs: 50,
      run: (signal) => apply(kubeScheduler(op.values, op.pki), signal),
    },
    kubeconfigTask(op),
    {
      id: 'etcd-members',
      title: 'Scaling etcd',
      after: ['api-server-serves'],
      expectedMs: 50,
      timeoutMs: 10 * MINUTE,
      run: (signal) => reconcileEtcdMembers(op, signal),
    },
    systemComponentsTask(op, () => [kubernetesEndpoints(op.values)]),
    {
      id: 'provider-components',
      title: 'Starting the components of the provider',
      after: ['api-server-serves'],
      skip: !provider.controlPlaneExtras,
      expectedMs: 50,
      run: async (signal) => apply((await provider.controlPlaneExtras?.(op.context())) ?? [], signal),
    },
    {
      id: 'api-server-version',
      title: 'Waiting for API servers of another version to end',
      after: ['api-server-serves'],
      expectedMs: 20,
      timeoutMs: 10 * MINUTE,
      run: async (signal) => {
        const { name, namespace } = values.shoot;
        const others = () => ofOtherVersions(seed.podsOf(`${namespace}/${name}`), values.version);
        await waitFor([seed.pods], () => others().length === 0, {
          timeoutMs: 10 * MINUTE,
          signal,
          what: () => `${others().join(', ')}, of another version than ${values.version}, to end`,
        });
      },
    },
    ...machineTasks(op, ['api-server-version']),
    nodesReadyTask(op, ['controller-manager', 'provider-components']),
    {
      id: 'control-plane-ready',
      title: 'Waiting for the control plane',
      after: ['controller-manager', 'scheduler', 'etcd-members'],
      expectedMs: 2500,
      timeoutMs: 5 * MINUTE,
      run: async (signal) => {
        const wanting = () => [
          ...[COMPONENTS.apiServer, COMPONENTS.controllerManager, COMPONENTS.scheduler].filter(
            (name) => !isRolledOut(seed.deployments.get(`${ns}/${name}`)),
          ),
          ...((seed.statefulSets.get(`${ns}/${COMPONENTS.etcd}`)?.status?.readyReplicas ?? 0) < op.values.etcd.replicas
            ? [COMPONENTS.etcd]
            : []),
        ];
        const isReady = () => wanting().length === 0;
        const what = () => `${wanting().join(', ')} to be ready${because(op.state.blocked.get('control-plane'))}`;
        const wait = async () => {
          do {
            // A member that is replaced meanwhile may have a new volume, and must be re-added before it starts.
            await reconcileEtcdMembers(op, signal);
            await waitFor([seed.deployments, seed.statefulSets, seed.pods], () => isReady() || !etcdPodsAreKnown(op), {
              timeoutMs: 5 * MINUTE,
              signal,
              what,
            });
          } while (!isReady());
        };
        await whileLooking(
          op,
          'control-plane',
          (until) => leasesBlocked(shootConnection(op).client, until),
          wait,
          signal,
        );
      },
    },
    tunnelTask(op),
    systemReadyTask(op, values.machinesOutside ? ['scheduler', 'tunnel'] : ['scheduler']),
    ...volumeTasks(op),
    metricsServerTask(op),
    encryptionTask(op, hostedServers(op)),
  ];
}

/**
 * For clusters older than kubeletAccess: API servers keep a client certificate with own rights at kubelets until the
 * new RBAC rules are applied, so that logs and exec do not fail.
 */
function earlierKubeletClient(op: Operation): Pick<PKIParameters, 'kubeletsAsMaster'> {
  const stored = () => op.seed.secrets.get(`${op.values.namespace}/${PKI_SECRET}`);
  op.kubeletsAsMaster = !op.state.kubeletAccess && callsKubeletsAsMaster(decodeSecret(stored()?.data));
  return op.kubeletsAsMaster ? { kubeletsAsMaster: true } : {};
}

/** Whether all pods are Ready and up to date: older pods may serve with outdated settings. */
function isRolledOut(deployment: Deployment | undefined): boolean {
  if (!deployment) return false;
  const { metadata, spec, status } = deployment;
  // The cache may show the size during hibernation.
  const wanted = spec.replicas || 1;
  return (
    (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0) &&
    (status?.updatedReplicas ?? 0) >= wanted &&
    (status?.readyReplicas ?? 0) >= wanted &&
    (status?.replicas ?? 0) <= wanted
  );
}

/** Names of API server pods with another version: if a new one fails to start, an old one keeps serving. Pure. */
export const ofOtherVersions = (pods: readonly Pod[], version: string): string[] =>
  pods
    .filter(
      ({ metadata, spec, status }) =>
        metadata.labels?.app === COMPONENTS.apiServer &&
        !hasEnded({ status }) &&
        !spec.containers.some(({ image }) => image?.endsWith(`:v${version}`)),
    )
    .map(({ metadata: { name } }) => name)
    .sort();

/** Present size of etcd; reconcileEtcdMembers changes it by one member at a time. */
function observedEtcd(op: Operation): Partial<ControlPlane['etcd']> {
  const ns = op.values.namespace;
  const found = op.seed.statefulSets.get(`${ns}/${COMPONENTS.etcd}`);
  // A new etcd starts with all members; an existing one keeps its size until its members agreed.
  const replicas = etcdSizeAwake(found) ?? op.values.replicas;
  // Recorded in the configuration that a member without data reads.
  const secret = op.seed.secrets.get(`${ns}/${COMPONENTS.etcd}`);
  const config = decodeSecret(secret?.data)[`${etcdMemberName(0)}.yaml`] ?? '{}';
  const initialised = (JSON.parse(config) as Record<string, unknown>)['initial-cluster-state'] === 'existing';
  const endpoints = Array.from({ length: Math.min(replicas, op.values.replicas) }, (_, ordinal) => ordinal);
  const volumes = notedVolumes(secret);
  return { replicas, initialised, endpoints, ...(Object.keys(volumes).length > 0 && { volumes }) };
}
