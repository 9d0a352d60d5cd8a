import { expect, it } from 'vitest';
import { wireAttached } from '../../../operator/controllers/attached/wiring.ts';
import { wireAutoscaling } from '../../../operator/controllers/autoscaling/wiring.ts';
import type { Core } from '../../../operator/controllers/core.ts';
import { wireHubs } from '../../../operator/controllers/membership/wiring.ts';
import { wireShoots } from '../../../operator/controllers/shoot/wiring.ts';
import { silent } from '../../../operator/kube/log.ts';
import { WorkQueue } from '../../../operator/kube/workqueue.ts';
import { partOf } from '../../kit/builders/partial.ts';

/** How many workers of each controller one namespace may have. */
const shares = new Map<string, number | undefined>();
const cache = { onChange: () => () => {}, list: () => [], get: () => undefined };
const core = partOf<Core>({
  clusters: cache,
  shoots: cache,
  seeds: cache,
  profiles: cache,
  quotas: cache,
  kubeconfigs: cache,
  decidedSecrets: cache,
  openClusters: cache,
  registry: cache,
  queues: { clusters: new WorkQueue(), shoots: new WorkQueue() },
  queue(name: string, { perNamespace }: { perNamespace?: number } = {}) {
    shares.set(name, perNamespace);
    return new WorkQueue();
  },
  state: { namespace: 'coppice-system' },
  log: silent,
  clusterAPI: '',
});

const parts = [
  wireAttached(core),
  wireAutoscaling(core, new Map(), {} as Parameters<typeof wireAutoscaling>[2]),
  wireHubs(core),
  wireShoots(core, {} as Parameters<typeof wireShoots>[1]),
];

it.each(['attached', 'autoscaling', 'membership', 'certificates'])(
  'clusters of one namespace whose API servers are slow on purpose leave workers of %s to those of others',
  (name) => {
    const { concurrency = 0 } = parts.flatMap(({ controllers }) => controllers).find((one) => one.name === name)!;
    expect(shares.get(name)).toBeGreaterThan(0);
    expect(shares.get(name)).toBeLessThan(concurrency);
  },
);
