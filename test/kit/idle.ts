import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeClient } from '../../operator/kube/client.ts';
import { EVENTS, NAMESPACES, NODES, PODS } from '../../operator/kube/resources.ts';
import { follow } from './garden.ts';

/** What follows a change on its own: events, slices, conditions. */
export const SETTLING_MS = 10_000;

/**
 * Without what may be written at any time: renewals of Leases, heartbeats of kubelets in the status of their nodes, and
 * requests for tokens, which store nothing: a kubelet asks for a new one of each pod after 48 minutes, four fifths of its hour.
 */
export const beyondHeartbeats = (counts: Record<string, number>): Record<string, number> =>
  Object.fromEntries(
    Object.entries(counts).filter(([what]) => !/ (leases|nodes\/status|events|serviceaccounts\/token)$/.test(what)),
  );

/**
 * Events since then, but for a kubelet's word that a probe was slow: that tells of a busy machine, not of a garden that writes.
 * Events are judged here, by who wrote them, and therefore left out of the counts above.
 */
export async function eventsSince(client: KubeClient, since: number): Promise<string[]> {
  const { items } = await client.list(EVENTS);
  return items
    .filter((event) => Date.parse(event.lastTimestamp ?? event.eventTime ?? '') >= since)
    .map((event) => `${event.source?.component || event.reportingComponent}: ${event.reason}`)
    .filter((line) => line !== 'kubelet: Unhealthy');
}

/** Resolves when nodes, pods and namespaces have not changed for a while, heartbeats aside. */
export async function quiet(client: KubeClient): Promise<void> {
  const [pods, nodes, namespaces] = await Promise.all([PODS, NODES, NAMESPACES].map((what) => follow(client, what)));
  for (;;) {
    const seen = [pods!.resourceVersion, nodes!.size, namespaces!.size];
    await sleep(SETTLING_MS);
    if (seen[0] === pods!.resourceVersion && seen[1] === nodes!.size && seen[2] === namespaces!.size) return;
  }
}
