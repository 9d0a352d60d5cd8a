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
  WORKERCLUSTERS,
} from '../../kube/resources.ts';
import { CliError } from '../errors.ts';
import { CLUSTERS_IN, DEMO, FLEET, MARK, POLICY, PRIVATE, WORK } from './burst-objects.ts';

const PATIENCE_MS = 4 * 60_000;

/** What there is by the names that the demo takes. Throws CliError where somebody else has taken one. */
export async function leftOfDemo(garden: KubeClient, signal: AbortSignal): Promise<KubeObject[]> {
  const named: [Resource, string][] = [
    [NAMESPACES, CLUSTERS_IN],
    [NAMESPACES, FLEET],
    [HUBS, DEMO],
    [CLOUDPROFILES, DEMO],
  ];
  const found = await Promise.all(
    named.map(([kind, name]) => garden.getOrUndefined(kind, name, undefined, { signal })),
  );
  const there = found.filter((one) => one !== undefined);
  const [key, value] = Object.entries(MARK)[0]!;
  const others = there.find(({ metadata }) => metadata.labels?.[key] !== value);
  if (others)
    throw new CliError(`there is a ${others.kind} ${others.metadata.name} that no demo made: the demo takes that name`);
  return there;
}

/** Takes away all that a demo makes, also of one that was interrupted, and waits until it is gone. Throws what is left. */
export async function cleanUp(garden: KubeClient, signal: AbortSignal): Promise<void> {
  // Work first: a cluster that leaves waits until no decision names it.
  await garden.delete(DEPLOYMENTS, WORK, FLEET, { signal });
  await garden.delete(PLACEMENTDECISIONS, WORK, FLEET, { signal });
  await garden.delete(BURSTPOLICIES, POLICY, CLUSTERS_IN, { signal });
  await garden.delete(WORKERCLUSTERS, PRIVATE, CLUSTERS_IN, { signal });
  await untilGone(garden, BURSTPOLICIES, ({ metadata }) => metadata.namespace === CLUSTERS_IN, signal);
  await untilGone(garden, WORKERCLUSTERS, ({ metadata }) => metadata.namespace === CLUSTERS_IN, signal);
  for (const kind of [HUBS, CLOUDPROFILES]) await garden.delete(kind, DEMO, undefined, { signal });
  for (const kind of [HUBS, CLOUDPROFILES])
    await untilGone(garden, kind, ({ metadata }) => metadata.name === DEMO, signal);
  for (const name of [CLUSTERS_IN, FLEET]) await garden.delete(NAMESPACES, name, undefined, { signal });
  await untilGone(garden, NAMESPACES, ({ metadata: { name } }) => name === CLUSTERS_IN || name === FLEET, signal);
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
      what: () => `${kind.kind} ${names().join(', ')} of the demo to be gone`,
    });
  } finally {
    await informer.stop();
  }
}
