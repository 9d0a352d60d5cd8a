import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import { ANNOTATIONS, LABELS, ROLES } from '../../../operator/api/group.ts';
import { COMPONENTS } from '../../../operator/api/names.ts';
import type { Seed } from '../../../operator/api/seed.ts';
import type { Shoot } from '../../../operator/api/shoot.ts';
import { controlPlaneValues } from '../../../operator/controllers/shoot/control-plane-values.ts';
import { VNI_ANNOTATION } from '../../../operator/controllers/shoot/vni.ts';
import { KubeClient } from '../../../operator/kube/client.ts';
import { waitFor } from '../../../operator/kube/informer.ts';
import { silent } from '../../../operator/kube/log.ts';
import {
  CLOUDPROFILES,
  conditionIsTrue,
  decodeSecret,
  NAMESPACES,
  NODES,
  type Node,
  PODS,
  type Pod,
  REPLICASETS,
  type ReplicaSet,
  SECRETS,
  SEEDS,
  SERVICES,
  type Secret,
  type Service,
  SHOOTS,
} from '../../../operator/kube/resources.ts';
import { bootstrapTokenSecret, newBootstrapToken, tokenText } from '../../../operator/shoot/bootstrap-token.ts';
import { bootstrapKubeconfig, kubeProxyKubeconfig } from '../../../operator/shoot/kubeconfigs.ts';
import { keyPair, PKI_SECRET } from '../../../operator/shoot/pki.ts';
import { machineAccess } from '../../../operator/shoot/system-components.ts';
import { CLUSTER_DOMAIN, dnsServiceAddress, machinesURL } from '../../../operator/shoot/values.ts';
import type { ProviderContext } from '../../../providers/contract.ts';
import {
  clusterClient,
  follow,
  gardenClient,
  kubeconfigOf,
  makeCluster,
  type Name,
  PATIENCE_MS,
  untilReady,
  untilShootReady,
} from '../garden.ts';
import type { MachineTestbed } from './machines.ts';

const PROFILE = 'conformance';
const ZONES = ['local-a', 'local-b'];
const TOKEN_LIFE_MS = 30 * 60_000;

/**
 * The real seed of a garden, and hosted clusters on it without nodes, which the operator is told to leave alone: what happens to their
 * machines from then on is the provider's own doing. `clusters`: those that there shall be.
 */
export async function localTestbed(gardenKubeconfig: string, clusters: readonly Name[]): Promise<MachineTestbed> {
  let writes = 0;
  const opened: KubeClient[] = [];
  const open = (kubeconfig: string): KubeClient => {
    const client = KubeClient.fromKubeconfig(kubeconfig, undefined, {
      onRequest: ({ method }) => {
        if (method !== 'GET') writes++;
      },
    });
    opened.push(client);
    return client;
  };
  const garden = open(gardenKubeconfig);
  const profile = await garden.apply(profileOf(await garden.get<CloudProfile>(CLOUDPROFILES, 'local')));
  const seed = await garden.get<Seed>(SEEDS, 'local');

  async function contextOf(cluster: Name): Promise<ProviderContext> {
    await makeCluster({ cloudProfile: PROFILE }, cluster);
    await untilReady(cluster);
    const shoot = await untilShootReady(cluster);
    await garden.mergePatch(SHOOTS, cluster.name, cluster.namespace, {
      metadata: { annotations: { [ANNOTATIONS.ignore]: 'true' } },
    });
    const inside = open(await kubeconfigOf(cluster));
    // A cluster without nodes has nobody who may join.
    for (const object of machineAccess()) await inside.apply(object);
    return contextFrom(garden, inside, shoot, profile, seed);
  }

  const contexts = new Map<string, ProviderContext>();
  for (const cluster of clusters) contexts.set(`${cluster.namespace}/${cluster.name}`, await contextOf(cluster));

  /** Resolves when there are as many machines as there should be, all of them nodes that are Ready, and none on its way out. */
  async function settled({ namespace, shootNamespace, shootName }: ProviderContext): Promise<void> {
    const cluster = { name: shootName, namespace: shootNamespace };
    const labelSelector = `${LABELS.role}=${ROLES.machine}`;
    const [sets, pods, nodes] = await Promise.all([
      follow<ReplicaSet>(gardenClient(), REPLICASETS, { namespace, labelSelector }),
      follow<Pod>(gardenClient(), PODS, { namespace, labelSelector }),
      follow<Node>(await clusterClient(cluster), NODES),
    ]);
    // The caches may not have seen yet what was just written.
    const live = await garden.list<ReplicaSet>(REPLICASETS, { namespace, labelSelector });
    const told = JSON.stringify(live.items.map(wantedOf).sort());
    const isSettled = () => {
      const machines = pods.list();
      const wanted = sets.list().reduce((sum, { spec }) => sum + (spec.replicas ?? 1), 0);
      return (
        JSON.stringify(sets.list().map(wantedOf).sort()) === told &&
        machines.length === wanted &&
        machines.every(({ metadata }) => !metadata.deletionTimestamp) &&
        machines.every(({ metadata }) => conditionIsTrue(nodes.get(metadata.name) ?? {}, 'Ready'))
      );
    };
    const what = () =>
      `the machines in ${namespace} to settle: ${pods.list().map(({ metadata, status }) => `${metadata.name} ${status?.phase}`)}`;
    await waitFor([sets, pods, nodes], isSettled, { timeoutMs: PATIENCE_MS, what });
  }

  return {
    context: (namespace, name) => contexts.get(`${namespace}/${name}`)!,
    pool: (change = {}) => ({
      name: 'workers',
      machineType: 'local',
      count: 1,
      labels: {},
      taints: [],
      zones: ZONES,
      ...change,
    }),
    otherType: 'half',
    nodes: async ({ shoot }) => (await shoot!.list<Node>(NODES)).items,
    writes: () => writes,
    leftIn: async ({ namespace, shoot }) => {
      const selection = { namespace, labelSelector: `${LABELS.role}=${ROLES.machine}` };
      const lists = await Promise.all([
        ...[REPLICASETS, PODS, SECRETS].map((kind) => garden.list(kind, selection)),
        ...(shoot ? [shoot.list(NODES)] : []),
      ]);
      return lists.flatMap(({ items }) => items.map(({ kind, metadata }) => `${kind} ${metadata.name}`));
    },
    settled,
    close: async () => {
      for (const { name, namespace } of clusters)
        await garden.mergePatch(SHOOTS, name, namespace, { metadata: { annotations: { [ANNOTATIONS.ignore]: null } } });
      await Promise.all(opened.map((client) => client.close()));
    },
  };
}

const wantedOf = ({ metadata, spec }: ReplicaSet): string => `${metadata.name} ${spec.replicas ?? 1}`;

/** The local profile with zones, and with a machine type that has less than a whole core. */
function profileOf({ apiVersion, kind, spec }: CloudProfile): CloudProfile {
  const [type] = spec.machineTypes;
  return {
    apiVersion,
    kind,
    metadata: { name: PROFILE },
    spec: {
      ...spec,
      machineTypes: [type!, { ...type!, name: 'half', cpu: '500m', memory: '1Gi', pods: 20 }],
      regions: spec.regions.map((region) => ({ ...region, zones: ZONES.map((name) => ({ name })) })),
    },
  };
}

/** What the operator would tell a provider of a shoot that it has made, from what is to be seen of it in its seed. */
async function contextFrom(
  garden: KubeClient,
  shoot: KubeClient,
  object: Shoot,
  profile: CloudProfile,
  seed: Seed,
): Promise<ProviderContext> {
  const { name, namespace: project = '', uid = '' } = object.metadata;
  const version = object.spec.kubernetes.version ?? '';
  const values = controlPlaneValues(object, profile, seed, version);
  const { namespace } = values;
  const [room, service, secret] = await Promise.all([
    garden.get(NAMESPACES, namespace),
    garden.get<Service>(SERVICES, COMPONENTS.apiServer, namespace),
    garden.get<Secret>(SECRETS, PKI_SECRET, namespace),
  ]);
  values.addresses = { apiServer: service.spec.clusterIP ?? '', etcd: [] };
  const pki = decodeSecret(secret.data);
  const tokens = new Map<string, string>();
  const { imageMirror } = (seed.spec.provider.providerConfig ?? {}) as { imageMirror?: string };
  return {
    seed: garden,
    shoot,
    namespace,
    shootName: name,
    shootNamespace: project,
    technicalID: namespace,
    uid,
    region: object.spec.region,
    kubernetesVersion: version,
    apiserverURL: machinesURL(values),
    clusterCA: keyPair(pki, 'ca').cert,
    podCIDR: values.networks.pods,
    serviceCIDR: values.networks.services,
    dnsIP: dnsServiceAddress(values.networks.services),
    clusterDomain: CLUSTER_DOMAIN,
    ...(imageMirror && { imageMirror }),
    ...(seed.spec.machineImage && { machineImage: seed.spec.machineImage }),
    vni: Number(room.metadata.annotations?.[VNI_ANNOTATION]),
    profile,
    bootstrapKubeconfig: async (pool) => {
      if (!tokens.has(pool)) {
        const token = newBootstrapToken();
        await shoot.create(bootstrapTokenSecret(token, pool, new Date(Date.now() + TOKEN_LIFE_MS)));
        tokens.set(pool, tokenText(token));
      }
      return bootstrapKubeconfig(values, pki, tokens.get(pool)!);
    },
    kubeProxyKubeconfig: async () => kubeProxyKubeconfig(values, pki),
    componentKubeconfig: () => Promise.reject(new Error('local machines need no other components')),
    log: silent,
  };
}
