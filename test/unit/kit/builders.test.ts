import { expect, it } from 'vitest';
import type { z } from 'zod';
import { burstPolicySpec } from '../../../operator/api/burstpolicy.ts';
import { cloudProfileSpec } from '../../../operator/api/cloudprofile.ts';
import { hubSpec } from '../../../operator/api/hub.ts';
import { quotaSpec } from '../../../operator/api/quota.ts';
import { seedSpec } from '../../../operator/api/seed.ts';
import { shootSpec } from '../../../operator/api/shoot.ts';
import { workerClusterSpec } from '../../../operator/api/workercluster.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';
import {
  buildBurstPolicy,
  buildCloudProfile,
  buildHub,
  buildPod,
  buildQuota,
  buildSeed,
  buildShoot,
  buildWorkerCluster,
} from '../../kit/builders/objects.ts';

it.each<[string, KubeObject, z.ZodType]>([
  ['WorkerCluster', buildWorkerCluster(), workerClusterSpec],
  ['CloudProfile', buildCloudProfile(), cloudProfileSpec],
  ['Shoot', buildShoot(), shootSpec],
  ['Seed', buildSeed(), seedSpec],
  ['Quota', buildQuota(), quotaSpec],
  ['Hub', buildHub(), hubSpec],
  ['BurstPolicy', buildBurstPolicy(), burstPolicySpec],
])('a built %s without overrides is valid by its schema', (kind, object, schema) => {
  expect(object.kind).toBe(kind);
  expect(schema.safeParse(object.spec).error).toBeUndefined();
});

it('builders merge overrides at each depth, replace lists, and remove undefined fields', () => {
  const pod = buildPod({ metadata: { labels: { app: 'web' }, namespace: undefined }, spec: { nodeName: 'a' } });
  expect(pod.metadata).toEqual({ name: 'one', labels: { app: 'web' } });
  expect(pod.spec).toEqual({ nodeName: 'a', containers: [] });
  expect(buildQuota({ spec: { metrics: { nodes: 3 } } }).spec).toEqual({ currency: 'USD', metrics: { nodes: 3 } });
});
