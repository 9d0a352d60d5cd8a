import { PLACEMENTDECISIONS } from '../../hubs/placement-decisions.ts';
import type { KubeClient } from '../../kube/client.ts';
import { Informer } from '../../kube/informer.ts';
import {
  BURSTPOLICIES,
  CLOUDPROFILES,
  DEPLOYMENTS,
  HUBS,
  type KubeObject,
  NAMESPACES,
  type Resource,
  SECRETS,
  WORKERCLUSTERS,
} from '../../kube/resources.ts';
import { CliError } from '../errors.ts';
import { CLUSTERS_IN, DEMO, FLEET, MARK, POLICY, PRIVATE, WORK } from './burst-objects.ts';
import { KARMADA_SECRET, type KarmadaFleet } from './karmada-fleet.ts';

const PATIENCE_MS = 4 * 60_000;

/** Objects with the demo's names. Throws CliError if one is not the demo's. @param namespace the operator's */
export async function leftOfDemo(garden: KubeClient, namespace: string, signal: AbortSignal): Promise<KubeObject[]> {
  const named: [Resource, string, string?][] = [
    [NAMESPACES, CLUSTERS_IN],
    [NAMESPACES, FLEET],
    [HUBS, DEMO],
    [CLOUDPROFILES, DEMO],
    [SECRETS, KARMADA_SECRET, namespace],
  ];
  const found = await Promise.all(named.map(([kind, name, of]) => garden.getOrUndefined(kind, name, of, { signal })));
  const there = found.filter((one) => one !== undefined);
  const [key, value] = Object.entries(MARK)[0]!;
  const others = there.find(({ metadata }) => metadata.labels?.[key] !== value);
  if (others)
    throw new CliError(
      `there is a ${others.kind} ${others.metadata.name} that no demo created, and the demo needs that name`,
    );
  return there;
}

/**
 * Deletes everything that a demo makes, also of an interrupted one, and waits until it is gone. Throws with what remains.
 * @param namespace the operator's
 * @param karmada Karmada of the demo; undefined: none
 */
export async function cleanUpDemo(
  garden: KubeClient,
  namespace: string,
  karmada: Pick<KarmadaFleet, 'takeWork' | 'takeRest'> | undefined,
  signal: AbortSignal,
): Promise<void> {
  const there = await leftOfDemo(garden, namespace, signal);
  const has = (kind: Resource, name: string) =>
    there.some((one) => one.kind === kind.kind && one.metadata.name === name);
  // Work first: a leaving cluster waits until nothing is placed there. A cluster whose work cannot be removed leaves by force.
  let failure: unknown;
  const inKarmada = async (act: ((stop: AbortSignal) => Promise<void>) | undefined) => {
    await act?.(signal).catch((error: unknown) => {
      failure ??= error;
    });
  };
  await inKarmada(karmada && ((stop) => karmada.takeWork(stop)));
  if (has(NAMESPACES, FLEET)) {
    await garden.delete(DEPLOYMENTS, WORK, FLEET, { signal });
    await garden.delete(PLACEMENTDECISIONS, WORK, FLEET, { signal });
  }
  if (has(NAMESPACES, CLUSTERS_IN)) {
    await garden.delete(BURSTPOLICIES, POLICY, CLUSTERS_IN, { signal });
    await garden.delete(WORKERCLUSTERS, PRIVATE, CLUSTERS_IN, { signal });
    for (const kind of [BURSTPOLICIES, WORKERCLUSTERS])
      await untilGone(garden, kind, ({ metadata }) => metadata.namespace === CLUSTERS_IN, signal);
  }
  const take = async (kinds: readonly Resource[]) => {
    const ours = there.flatMap((one) => kinds.flatMap((kind) => (kind.kind === one.kind ? [{ kind, one }] : [])));
    for (const { kind, one } of ours) {
      const { name, namespace: of, uid = '' } = one.metadata;
      await garden.delete(kind, name, of, { signal, preconditions: { uid } });
    }
    for (const { kind, one } of ours)
      await untilGone(garden, kind, ({ metadata }) => metadata.uid === one.metadata.uid, signal);
  };
  await take([HUBS, CLOUDPROFILES]);
  await inKarmada(karmada && ((stop) => karmada.takeRest(stop)));
  // Keep the Secret while Karmada still has objects of the demo.
  if (failure) throw failure;
  await take([SECRETS, NAMESPACES]);
}

async function untilGone(
  garden: KubeClient,
  kind: Resource,
  isOurs: (object: KubeObject) => boolean,
  signal: AbortSignal,
): Promise<void> {
  const informer = new Informer(garden, kind);
  informer.start();
  const left = () => informer.list().filter(isOurs);
  const names = () => left().map(({ metadata }) => metadata.name);
  try {
    await informer.waitFor(() => left().length === 0, {
      timeoutMs: PATIENCE_MS,
      signal,
      what: () => `${kind.kind} ${names().join(', ')} of the demo to be deleted`,
    });
  } finally {
    await informer.stop();
  }
}
