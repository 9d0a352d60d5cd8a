import { crds } from '../api/crd.ts';
import type { KubeClient } from '../kube/client.ts';
import { type Clock, sleep, systemClock } from '../kube/clock.ts';
import { KubeApiError } from '../kube/errors.ts';
import { CRDS, type KubeObject } from '../kube/resources.ts';
import { isEstablished, planCrds } from './plan-crds.ts';

const LOOK_AGAIN_MS = 300;
/** A busy API server takes seconds to serve a new kind. */
const PATIENCE_MS = 120_000;
const TRIES = 5;

/**
 * Updates a cluster's CRDs to this release and waits until all are served. Throws, with nothing written, where one
 * cannot be updated.
 * @param release x.y.z
 * @returns the changes, a line each
 */
export async function bringCrds(client: KubeClient, release: string, clock: Clock = systemClock): Promise<string[]> {
  const wanted = crds();
  for (let tries = 1; ; tries++) {
    try {
      return await bring(client, wanted, release, clock);
    } catch (error) {
      // The API server writes their status meanwhile; the next read includes it.
      const isRace = error instanceof KubeApiError && (error.isConflict || error.status === 409);
      if (!isRace || tries === TRIES) throw error;
    }
  }
}

async function bring(client: KubeClient, wanted: KubeObject[], release: string, clock: Clock): Promise<string[]> {
  const there = new Map<string, KubeObject>();
  for (const { metadata } of wanted) {
    const found = await client.getOrUndefined(CRDS, metadata.name);
    if (found) there.set(metadata.name, found);
  }
  const steps = planCrds(there, wanted, release);
  const refused = steps.flatMap((step) => (step.do === 'refuse' ? [`${step.name}: ${step.problem}`] : []));
  if (refused.length > 0) throw new Error(refused.join('; '));
  const lines: string[] = [];
  for (const step of steps) {
    if (step.do === 'keep') lines.push(`${step.name} stays: ${step.because}`);
    if (step.do === 'create') {
      await client.create(step.object);
      lines.push(`${step.object.metadata.name} is made`);
    }
    if (step.do === 'replace') {
      const { metadata } = await client.update(step.object);
      const isSame = metadata.resourceVersion === step.object.metadata.resourceVersion;
      lines.push(`${metadata.name} ${isSame ? 'is up to date' : `is that of release ${release} now`}`);
    }
  }
  await whenServed(client, wanted, clock);
  return lines;
}

async function whenServed(client: KubeClient, wanted: KubeObject[], clock: Clock): Promise<void> {
  const deadline = clock.now() + PATIENCE_MS;
  for (const { metadata } of wanted) {
    while (!isEstablished(await client.getOrUndefined(CRDS, metadata.name))) {
      if (clock.now() > deadline) throw new Error(`the API server does not serve ${metadata.name}: see its conditions`);
      await sleep(LOOK_AGAIN_MS, undefined, clock);
    }
  }
}
