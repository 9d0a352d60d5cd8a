import type { BurstPolicySpec } from '../../../operator/api/burstpolicy.ts';
import { ALPHA_API_VERSION, API_VERSION } from '../../../operator/api/group.ts';
import type { Quota } from '../../../operator/api/quota.ts';
import type { Shoot } from '../../../operator/api/shoot.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { DepletedOffers } from '../../../operator/capacity/depleted-offers.ts';
import { wireBurst } from '../../../operator/controllers/burst/wiring.ts';
import { byNamespace } from '../../../operator/controllers/by-namespace.ts';
import { DECIDED_SELECTOR, DecidedSizes } from '../../../operator/controllers/decided-sizes.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { Informer } from '../../../operator/kube/informer.ts';
import { Registry } from '../../../operator/kube/metrics.ts';
import { QUOTAS, SECRETS, type Secret, SHOOTS } from '../../../operator/kube/resources.ts';
import { type DeepPartial, withOverrides } from '../builders/partial.ts';
import type { HubTestbed } from './hub-testbed.ts';

/**
 * Has operators of the testbed that start from now on run the controller of BurstPolicies, too.
 * @param tellSizes called with what is decided about sizes of pools, for each such operator
 */
export function runBurst(testbed: HubTestbed, tellSizes: (sizes: DecidedSizes) => void = () => {}): void {
  testbed.beside = (core, hubs) => {
    const { garden } = core;
    const shoots = new Informer<Shoot>(garden, SHOOTS, { indexes: byNamespace });
    const quotas = new Informer<Quota>(garden, QUOTAS, { indexes: byNamespace });
    const decided = new Informer<Secret>(garden, SECRETS, {
      fieldSelector: DECIDED_SELECTOR,
      namespace: core.state.namespace,
    });
    const sizes = new DecidedSizes(garden, core.state.namespace, decided);
    tellSizes(sizes);
    const more = {
      shoots,
      quotas,
      sizes,
      decided: ({ metadata }: WorkerCluster) => sizes.get(`${metadata.namespace}/${metadata.name}`, metadata.uid ?? ''),
      capacity: new DepletedOffers(core.now),
      metrics: new Registry(),
    };
    const burst = wireBurst({ ...core, ...more }, hubs, { granted: new Map() });
    return { ...burst, caches: [...(burst.caches ?? []), shoots, quotas, decided] };
  };
}

/** CloudProfile `cloud`, of which one machine of 4 CPUs and 8Gi costs 0.1 USD an hour, and 0.9 with two GPUs. */
export async function sellClusters(client: KubeClient): Promise<void> {
  const price = { hourly: '0.1', currency: 'USD' };
  await client.apply({
    apiVersion: API_VERSION,
    kind: 'CloudProfile',
    metadata: { name: 'cloud' },
    spec: {
      type: 'cloud',
      kubernetes: { versions: [{ version: '1.36.3', classification: 'supported' }] },
      machineTypes: [
        { name: 'large', cpu: '4', gpu: '0', memory: '8Gi', price },
        { name: 'gpu', cpu: '4', gpu: '2', memory: '8Gi', price: { ...price, hourly: '0.9' } },
      ],
      regions: [{ name: 'here' }],
      defaults: { mode: 'Hosted', region: 'here', machineType: 'large' },
    },
  });
}

/**
 * BurstPolicy shop/peak of Hub test, which may buy one cluster, with times that a test can wait for.
 * @param more overrides the spec; a field that is undefined is left out
 */
export async function makePeakPolicy(
  client: KubeClient,
  candidates: readonly object[],
  more: DeepPartial<BurstPolicySpec> = {},
): Promise<void> {
  const spec = {
    hub: 'test',
    trigger: { pendingFor: '2s' },
    maximumClusters: 1,
    budget: { hourly: '1' },
    scaleIn: { idleFor: '2s', minimumLife: '5s' },
    cooldown: { scaleOut: '1s', scaleIn: '1s' },
  };
  await client.create({
    apiVersion: ALPHA_API_VERSION,
    kind: 'BurstPolicy',
    metadata: { name: 'peak', namespace: 'shop' },
    spec: { ...withOverrides<object>(spec, more), candidates },
  });
}
