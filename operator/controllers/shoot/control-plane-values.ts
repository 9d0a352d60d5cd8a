import type { Provider } from '../../../providers/contract.ts';
import { type CloudProfile, DEFAULT_RANGES } from '../../api/cloudprofile.ts';
import { technicalID } from '../../api/names.ts';
import type { Seed } from '../../api/seed.ts';
import { controlPlaneMembers, type Shoot } from '../../api/shoot.ts';
import type { SeedAddresses } from '../../clusters/seed-addresses.ts';
import type { Surroundings } from '../../shoot/network-policies.ts';
import type { ControlPlane } from '../../shoot/values.ts';
import { hostNames } from './dns/dns-names.ts';

/** On a Seed: storage class for etcd's volumes. Absent: the seed's default class. */
const STORAGE_CLASS_ANNOTATION = 'multi-cluster.demo.io/storage-class';

/** Inputs of the control plane's manifests, before addresses and etcd's size are known. */
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
    ...(seed.spec.settings?.auditLog?.level === 'Metadata' && { auditLog: true }),
    ...(seed.spec.exposure && { exposure: seed.spec.exposure.type }),
    ...(seed.spec.exposure?.address && { exposedAt: seed.spec.exposure.address }),
    ...(names.length > 0 && { hostNames: names }),
  };
}

/** Largest number of nodes of the shoot. */
const mostNodes = ({ spec }: Shoot): number =>
  (spec.provider.workers ?? []).reduce((sum, { maximum, minimum }) => sum + Math.max(minimum, maximum ?? 0), 0);

/** Values of a hosted control plane, with the network path between API servers and machines. */
export function reachValues(
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

/** Registry mirror for machines and pods of the seed. Absent: none. */
export const imageMirrorOf = ({ spec }: Seed): string | undefined =>
  (spec.provider.providerConfig as { imageMirror?: string } | undefined)?.imageMirror;

/** PEM of the mirror's CA. Absent: a trusted CA, or no TLS. */
export const imageMirrorCAOf = ({ spec }: Seed): string | undefined =>
  (spec.provider.providerConfig as { imageMirrorCA?: string } | undefined)?.imageMirrorCA;

/** Settings of a control plane from its seed. Pure. */
export function seedSurroundings(
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
