import type { Limits, WaitingWork } from '../../../operator/burst/clusters/model.ts';
import type { FitPod, NodeTemplate } from '../../../operator/burst/fit/model.ts';
import { fitPod } from '../../../operator/burst/fit/pod.ts';
import { buildPod } from '../builders/objects.ts';

/** Milliseconds since the epoch. */
export const NOW = Date.parse('2026-11-23T12:00:00Z');
export const MINUTE = 60_000;
export const GIB = 2 ** 30;

/** Limits of a policy that may buy three clusters for 60 USD an hour. */
export const limits = (more: Partial<Limits> = {}): Limits => ({
  pendingForMs: 30_000,
  maximumClusters: 3,
  hourly: 60_000_000n,
  monthly: undefined,
  currency: 'USD',
  idleForMs: 10 * MINUTE,
  minimumLifeMs: 30 * MINUTE,
  cooldownOutMs: MINUTE,
  cooldownInMs: 10 * MINUTE,
  isSuspended: false,
  ...more,
});

/** A replica of waiting work. */
export const podOf = (cpu: string, memory = '1Gi'): FitPod =>
  fitPod(
    buildPod({
      metadata: { name: 'replica', namespace: 'shop' },
      spec: { containers: [{ name: 'work', resources: { requests: { cpu, memory } } }] },
    }),
  );

/** Work that has waited for ten minutes. */
export const work = (source: string, count: number, cpu = '1', more: Partial<WaitingWork> = {}): WaitingWork => ({
  source,
  count,
  pod: podOf(cpu),
  each: `${cpu} CPU`,
  since: NOW - 10 * MINUTE,
  ...more,
});

/** Nodes of a pool, with so many CPUs. */
export const template = (cpu: number): NodeTemplate => ({
  id: 'pool',
  labels: {},
  taints: [],
  allocatable: { cpu: cpu * 1000, memory: 64 * GIB, storage: 0, others: new Map(), pods: 110 },
  attachLimits: new Map(),
});
