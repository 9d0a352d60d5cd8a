import type { Pool, Provider, ProviderContext } from '../../../providers/contract.ts';
import { type CloudProfile, DEFAULT_RANGES } from '../../api/cloudprofile.ts';
import { LABELS } from '../../api/group.ts';
import { technicalID } from '../../api/names.ts';
import type { Seed } from '../../api/seed.ts';
import { controlPlaneMembers, controlPlaneWorker, type Shoot, type Worker } from '../../api/shoot.ts';
import type { SeedAddresses } from '../../clusters/seed-addresses.ts';
import { conditionIsTrue } from '../../kube/resources.ts';
import { type CertificateRequest, issue, issuedBy, LEAF_DAYS, matches, needsRenewal } from '../../pki/certificates.ts';
import { bootstrapTokenSecret, newBootstrapToken, tokenText } from '../../shoot/bootstrap-token.ts';
import { KUBEADM_JOINERS } from '../../shoot/kubeadm-certs.ts';
import { bootstrapKubeconfig, clientKubeconfig, kubeProxyKubeconfig } from '../../shoot/kubeconfigs.ts';
import type { Surroundings } from '../../shoot/network-policies.ts';
import { ADMIN_GROUP, keyPair } from '../../shoot/pki.ts';
import { pkiSecret } from '../../shoot/pki-secret.ts';
import { encryptionSeen } from '../../shoot/secrets-encryption.ts';
import { CLUSTER_DOMAIN, type ControlPlane, dnsServiceAddress, machinesURL } from '../../shoot/values.ts';
import { hostNames } from './dns/dns-names.ts';
import { needsToken, TOKEN_LIFE_MS, TOKENS_SECRET, tokenOf, tokensSecret } from './machines/bootstrap-tokens.ts';
import { paceOf } from './machines/roll.ts';
import type { Operation } from './operation.ts';

/** On a Seed: storage class of etcd's volumes. Absent: the seed's default class. */
export const STORAGE_CLASS_ANNOTATION = 'multi-cluster.demo.io/storage-class';

/** The worker pools of a shoot, as providers take them; machines that run its control plane are none of these. */
export const poolsOfShoot = (shoot: Shoot): Pool[] =>
  (shoot.spec.provider.workers ?? [])
    .filter((worker) => worker.controlPlane === undefined)
    .map((worker) => poolOf(shoot, worker));

/** The pool of machines that run the control plane of a self-hosted shoot. */
export function controlPlanePoolOf(shoot: Shoot): Pool | undefined {
  const worker = controlPlaneWorker(shoot.spec);
  if (!worker) return undefined;
  const pool = poolOf(shoot, worker);
  // kubeadm sets it when all is done; a kubelet says it from its first moment, so that nothing else ever comes here.
  return { ...pool, taints: [CONTROL_PLANE_TAINT, ...pool.taints] };
}

/** Kubernetes' own taint of nodes that run a control plane. */
const CONTROL_PLANE_TAINT = { key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' } as const;

const poolOf = (shoot: Shoot, worker: Worker): Pool => ({
  name: worker.name,
  machineType: worker.machine.type,
  count: worker.minimum,
  maxSurge: paceOf(worker).surge,
  labels: { ...worker.labels, [LABELS.pool]: worker.name, [LABELS.workerCluster]: shoot.metadata.name },
  taints: worker.taints ?? [],
  zones: worker.zones ?? [],
  ...((worker.providerConfig as { spot?: boolean } | undefined)?.spot === true && { spot: true }),
});

/** What the manifests of the control plane are made from, before addresses and etcd's size are known. */
export function controlPlaneValues(
  shoot: Shoot,
  profile: CloudProfile | undefined,
  seed: Seed,
  version: string,
): ControlPlane {
  const { name, namespace = '' } = shoot.metadata;
  const members = controlPlaneMembers(shoot.spec);
  const storageClassName = seed.metadata.annotations?.[STORAGE_CLASS_ANNOTATION];
  const names = hostNames(shoot, seed);
  return {
    shoot: { name, namespace },
    namespace: technicalID(namespace, name),
    version,
    replicas: members,
    nodes: mostNodes(shoot),
    networks: {
      pods: shoot.spec.networking?.pods ?? profile?.spec.defaults?.pods ?? DEFAULT_RANGES.pods,
      services: shoot.spec.networking?.services ?? profile?.spec.defaults?.services ?? DEFAULT_RANGES.services,
    },
    addresses: { apiServer: '', etcd: [] },
    etcd: {
      replicas: members,
      initialised: false,
      endpoints: Array.from({ length: members }, (_, ordinal) => ordinal),
      ...(storageClassName && { storageClassName }),
    },
    ...(seed.spec.exposure && { exposure: seed.spec.exposure.type }),
    ...(seed.spec.exposure?.address && { exposedAt: seed.spec.exposure.address }),
    ...(names.length > 0 && { hostNames: names }),
  };
}

/** How many nodes the shoot asks for, or may have by itself. */
const mostNodes = ({ spec }: Shoot): number =>
  (spec.provider.workers ?? []).reduce((sum, { maximum, minimum }) => sum + Math.max(minimum, maximum ?? 0), 0);

/** The values of a hosted control plane, and how API servers and machines come to each other. */
export function reaching(
  values: ControlPlane,
  { spec: { machineImage } }: Seed,
  provider: Pick<Provider, 'inCloud' | 'clusterNetwork'>,
  vni: number,
): ControlPlane {
  if (provider.inCloud) return { ...values, machinesOutside: true };
  const podCIDR = values.networks.pods;
  const clusterNetwork = provider.clusterNetwork?.({ podCIDR, vni, ...(machineImage && { machineImage }) });
  return clusterNetwork ? { ...values, clusterNetwork } : values;
}

const imageMirrorOf = ({ spec }: Seed): string | undefined =>
  (spec.provider.providerConfig as { imageMirror?: string } | undefined)?.imageMirror;

/** What is around a control plane in its seed. Pure. */
export function surroundings(
  seed: Seed,
  addresses: Pick<SeedAddresses, 'nodes' | 'apiServers'>,
  { privilegedInSeed }: Pick<Provider, 'privilegedInSeed'>,
  { vni, operatorNamespace }: Pick<Surroundings, 'vni' | 'operatorNamespace'>,
): Surroundings {
  const imageMirror = imageMirrorOf(seed);
  return {
    networks: seed.spec.networks,
    nodeAddresses: addresses.nodes(),
    apiServers: addresses.apiServers(),
    operatorNamespace,
    ...(imageMirror && { imageMirror }),
    vni,
    hasMachines: privilegedInSeed === true,
  };
}

/** What the provider is told. Without certificates (a shoot that is only half made) it is enough to take things away. */
export function providerContext(op: Operation, profile: CloudProfile, seedObject: Seed): ProviderContext {
  const { seed, shoot, state, values, vni, deps } = op;
  const { name, namespace = '', uid = '' } = shoot.metadata;
  const hasKeys = Object.keys(op.pki).length > 0;
  const encryptionRevision = encryptionSeen(op.pki)?.revision;
  const mirror = imageMirrorOf(seedObject);
  return {
    seed: seed.client,
    ...(state.connection && { shoot: state.connection.client }),
    namespace: values.namespace,
    shootName: name,
    shootNamespace: namespace,
    technicalID: values.namespace,
    uid,
    region: shoot.spec.region,
    kubernetesVersion: values.version,
    apiserverURL: values.addresses.apiServer ? machinesURL(values) : '',
    clusterCA: hasKeys ? keyPair(op.pki, 'ca').cert : '',
    podCIDR: values.networks.pods,
    serviceCIDR: values.networks.services,
    ...(shoot.spec.networking?.nodes && { nodeCIDR: shoot.spec.networking.nodes }),
    dnsIP: dnsServiceAddress(values.networks.services),
    clusterDomain: CLUSTER_DOMAIN,
    ...(mirror && { imageMirror: mirror }),
    ...(seedObject.spec.machineImage && { machineImage: seedObject.spec.machineImage }),
    ...(encryptionRevision !== undefined && { encryptionRevision }),
    vni,
    profile,
    bootstrapKubeconfig: async (pool, machines) =>
      bootstrapKubeconfig(values, op.pki, await state.secretWrites.run(() => bootstrapToken(op, pool, machines))),
    kubeProxyKubeconfig: async () => kubeProxyKubeconfig(values, op.pki),
    componentKubeconfig: (user) => state.secretWrites.run(() => componentKubeconfig(op, user)),
    ...(op.provider.inCloud && { cloud: () => deps.account(shoot, profile, op.signal) }),
    log: deps.log,
  };
}

/** The pool's token: the one it has, or a new one while machines have yet to join. */
async function bootstrapToken(op: Operation, pool: string, machines: number | undefined): Promise<string> {
  const { seed, state, values, deps } = op;
  const key = `${values.namespace}/${TOKENS_SECRET}`;
  const existing = seed.secrets.get(key);
  const token = tokenOf(existing, pool);
  const pools = [...op.pools, ...(op.controlPlanePool ? [op.controlPlanePool] : [])];
  const wanted = machines ?? pools.find((candidate) => candidate.name === pool)?.count ?? 0;
  const nodes = state.connection?.nodes.list() ?? [];
  const joined = nodes.filter(
    (node) => node.metadata.labels?.[LABELS.pool] === pool && conditionIsTrue(node, 'Ready'),
  ).length;
  if (token && !needsToken(token, wanted, joined, deps.now())) return token.text;
  const made = newBootstrapToken();
  const expires = new Date(+deps.now() + TOKEN_LIFE_MS);
  // First the cluster accepts it, then machines are told: the other way round a quick machine would be refused.
  const groups = pool === op.controlPlanePool?.name ? [KUBEADM_JOINERS] : [];
  await state.connection?.client.create(bootstrapTokenSecret(made, pool, expires, groups));
  const secret = tokensSecret(
    values,
    existing,
    pools.map(({ name }) => name),
    new Map([[pool, { text: tokenText(made), expires }]]),
  );
  seed.secrets.absorb((await seed.applier.apply(secret)).object);
  return tokenText(made);
}

/** Kept among the shoot's keys, so that equal calls give equal answers also after a restart. */
async function componentKubeconfig(op: Operation, user: string): Promise<string> {
  const id = `component-${user}`;
  const now = op.deps.now();
  const known = op.pki[`${id}.crt`];
  const ca = keyPair(op.pki, 'ca');
  const request: CertificateRequest = { commonName: user, organizations: [ADMIN_GROUP], usages: ['client'] };
  const sound = known && issuedBy(known, ca.cert) && matches(known, request) && !needsRenewal(known, now);
  if (!sound) {
    const pair = await issue(ca, { ...request, days: LEAF_DAYS, now });
    op.pki = { ...op.pki, [`${id}.crt`]: pair.cert, [`${id}.key`]: pair.key };
    op.seed.secrets.absorb((await op.seed.applier.apply(pkiSecret(op.values, op.pki))).object);
  }
  return clientKubeconfig(op.values, op.pki, keyPair(op.pki, id), user);
}
