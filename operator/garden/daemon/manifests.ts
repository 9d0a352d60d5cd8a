import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { loadAll } from 'js-yaml';
import type { ImageMirror } from '../../../providers/local/mirror-hosts.ts';
import { nthAddress } from '../../api/address-range.ts';
import { API_VERSION } from '../../api/group.ts';
import { installManifests } from '../../api/install.ts';
import { EMBEDDED_SEED } from '../../api/names.ts';
import type { KubeClient } from '../../kube/client.ts';
import { isNotFound, isTransient, KubeApiError } from '../../kube/errors.ts';
import { Informer } from '../../kube/informer.ts';
import { podSecurityLabels } from '../../kube/pod-security.ts';
import { CRDS, type KubeObject, NODES, type Node } from '../../kube/resources.ts';
import { gardenBindings } from '../control-plane/administrators.ts';
import { idleWarnings } from '../control-plane/idle-controllers.ts';
import type { Ranges } from '../host/ranges.ts';
import { storageClass } from '../seed/volumes.ts';

const PROFILES = fileURLToPath(new URL('../../../profiles', import.meta.url));
const SEED_SECRET = { name: 'seed-local', namespace: 'coppice-system' };

/** The Seed for this machine: the garden itself is the seed. */
export const localSeed = (ranges: Ranges, mirror: ImageMirror, rootless = false): KubeObject => ({
  apiVersion: API_VERSION,
  kind: 'Seed',
  metadata: { name: EMBEDDED_SEED },
  spec: {
    provider: {
      type: 'local',
      region: 'local',
      providerConfig: { imageMirror: mirror.url, ...(mirror.ca && { imageMirrorCA: mirror.ca }) },
    },
    networks: { pods: ranges.pods, nodes: ranges.nodes, services: ranges.services },
    // The host has no route to ClusterIPs of a rootless seed.
    exposure: rootless ? { type: 'NodePort', address: '127.0.0.1' } : { type: 'ClusterIP' },
  },
});

/** The Seed for another cluster, and the Secret with its kubeconfig. */
export const foreignSeed = (kubeconfig: string, networks: { pods: string; services: string }): KubeObject[] => [
  {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: SEED_SECRET.namespace, labels: podSecurityLabels('restricted') },
  },
  {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { ...SEED_SECRET },
    type: 'Opaque',
    data: { value: Buffer.from(kubeconfig).toString('base64') },
  },
  {
    apiVersion: API_VERSION,
    kind: 'Seed',
    metadata: { name: EMBEDDED_SEED },
    spec: {
      provider: { type: 'local', region: 'local' },
      networks,
      kubeconfigRef: SEED_SECRET,
      // The operator is outside that cluster and cannot reach its ClusterIPs.
      exposure: { type: 'NodePort' },
      machineImage: 'kindest/node',
    },
  },
];

/** The shipped CloudProfiles. */
export async function shippedProfiles(): Promise<KubeObject[]> {
  const names = await readdir(PROFILES).catch(() => [] as string[]);
  const texts = await Promise.all(
    names.filter((name) => name.endsWith('.yaml')).map((name) => readFile(`${PROFILES}/${name}`, 'utf8')),
  );
  return texts.flatMap((text) => loadAll(text) as KubeObject[]).filter(Boolean);
}

const CRD_PATIENCE_MS = 60_000;
const APPLY_PATIENCE_MS = 60_000;
const APPLY_AGAIN_MS = 100;

const isCrd = ({ kind }: KubeObject): boolean => kind === 'CustomResourceDefinition';

/**
 * Applies CRDs, including those among the objects, RBAC and policies. Resolves when the kinds are served, so that an
 * operator can start.
 */
export async function applyKinds(client: KubeClient, objects: KubeObject[], signal?: AbortSignal): Promise<void> {
  const install = [...installManifests(), ...gardenBindings(), ...idleWarnings(), ...objects.filter(isCrd)];
  await Promise.all(install.map((object) => applyPatiently(client, object, signal)));
  await whenEstablished(
    client,
    install.filter(isCrd).map(({ metadata }) => metadata.name),
    signal,
  );
}

/**
 * The profile with a limit of machines of provider local for this computer. Other profiles, and a profile with a limit,
 * stay unchanged. Pure.
 */
export function withMachineLimit(profile: KubeObject, mostMachines: number): KubeObject {
  const spec = profile.spec as { type: string; limits?: { maxNodesTotal?: number } };
  if (spec.type !== 'local' || spec.limits?.maxNodesTotal !== undefined) return profile;
  return { ...profile, spec: { ...spec, limits: { ...spec.limits, maxNodesTotal: mostMachines } } } as KubeObject;
}

/**
 * Applies profiles and the other objects that are no CRDs.
 * @param mostMachines machine limit per cluster of provider local. Absent: machines are not on this computer
 */
export async function applyObjects(
  client: KubeClient,
  objects: KubeObject[],
  signal?: AbortSignal,
  mostMachines?: number,
): Promise<void> {
  const shipped = await shippedProfiles();
  const profiles =
    mostMachines === undefined ? shipped : shipped.map((profile) => withMachineLimit(profile, mostMachines));
  const isFirst = ({ kind }: KubeObject) => kind === 'Namespace';
  const first = [storageClass(), ...objects.filter(isFirst)];
  await Promise.all(first.map((object) => applyPatiently(client, object, signal)));
  const rest = [...profiles, ...objects.filter((object) => !isFirst(object) && !isCrd(object))];
  await Promise.all(rest.map((object) => applyPatiently(client, object, signal)));
}

async function whenEstablished(client: KubeClient, names: string[], signal?: AbortSignal): Promise<void> {
  const informer = new Informer(client, CRDS);
  informer.start();
  try {
    const isEstablished = (name: string) =>
      informer
        .get(name)
        ?.status?.conditions?.some(
          (c: { type: string; status: string }) => c.type === 'Established' && c.status === 'True',
        );
    await informer.waitFor(() => names.every(isEstablished) || undefined, {
      timeoutMs: CRD_PATIENCE_MS,
      signal,
      what: 'the CRDs to be served',
    });
  } finally {
    await informer.stop();
  }
}

/**
 * Applies with retries for a minute: an established kind may not be served for a moment, and etcd on a busy machine may
 * answer late; a failed garden would have to be restarted by its owner.
 */
export async function applyPatiently(
  client: Pick<KubeClient, 'apply'>,
  object: KubeObject,
  signal?: AbortSignal,
): Promise<void> {
  const deadline = performance.now() + APPLY_PATIENCE_MS;
  for (;;) {
    try {
      await client.apply(object, { signal });
      return;
    } catch (error) {
      signal?.throwIfAborted();
      if (!(isNotFound(error) || isTransient(error)) || performance.now() > deadline) {
        const reason = error instanceof KubeApiError ? error.message : String(error);
        throw new Error(`${object.kind} ${object.metadata.name} cannot be applied: ${reason}`, { cause: error });
      }
    }
    await delay(APPLY_AGAIN_MS, undefined, { signal });
  }
}

const PODS_DEFAULT = '10.244.0.0/16';
const SERVICES_DEFAULT = '10.96.0.0/16';

/** Ranges of another cluster, as far as it reveals them; defaults otherwise. */
export async function networksOf(seed: KubeClient): Promise<{ pods: string; services: string }> {
  const nodes = await seed.list<Node>(NODES);
  const cidrs = await seed
    .request<{ items: { spec: { cidrs: string[] } }[] }>('GET', '/apis/networking.k8s.io/v1/servicecidrs')
    .catch(() => ({ items: [] }));
  const podRange = nodes.items
    .map((node) => node.spec?.podCIDR as string | undefined)
    .find((range) => range?.includes('.'));
  const services = cidrs.items.flatMap(({ spec }) => spec.cidrs).find((range) => range.includes('.'));
  return { pods: podRange ? widen(podRange) : PODS_DEFAULT, services: services ?? SERVICES_DEFAULT };
}

/** The /16 that a node's pod range was most likely cut from. */
const widen = (range: string): string => `${nthAddress(range.replace(/\/.*$/, '/16'), 0)}/16`;
