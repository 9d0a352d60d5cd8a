import { describe, expect, it } from 'vitest';
import type { ClusterCost } from '../../../operator/api/cost.ts';
import {
  activityText,
  clusterFailureOf,
  columnsOf,
  isReady,
  isShownAsleep,
  simulatedWarning,
  summaryText,
} from '../../../operator/cli/clusterview.ts';
import { listOf, tableOf } from '../../../operator/cli/commands/get.ts';
import { nextSteps } from '../../../operator/cli/commands/start.ts';
import { kindOf, QUOTA_KIND, WORKER_CLUSTER_KIND } from '../../../operator/cli/kinds.ts';
import { accruedText, costSentence, hourlyText } from '../../../operator/cli/render/cost.ts';
import { clusterLines, clusterLogLine } from '../../../operator/cli/waiting.ts';
import { AGO, COST, cluster, condition, NOW, operation, quota, READY } from './objects.ts';

const creating = cluster(
  'new',
  {},
  {
    phase: 'Creating',
    mode: 'Hosted',
    controlPlane: { desired: 1, ready: 0 },
    nodes: { desired: 2, current: 0, ready: 0 },
    lastOperation: operation('Processing', 62, 'Waiting for kube-apiserver'),
    conditions: [condition('Ready', 'False', 'Creating', 'not yet')],
  },
);
const simulated = cluster(
  'demo-worker-cluster',
  { cloudProvider: 'aws', controlPlaneNodes: 3, dataPlaneNodes: 20 },
  { ...READY, simulated: true, controlPlane: { desired: 3, ready: 3 }, nodes: { desired: 20, current: 20, ready: 20 } },
  { namespace: 'team' },
);
const failed = cluster(
  'bad',
  { cloudProvider: 'nowhere' },
  {
    observedGeneration: 1,
    lastOperation: operation('Failed', 0, 'Validating'),
    lastErrors: [{ description: 'there is no CloudProfile\n"nowhere"', codes: ['ERR_CONFIGURATION_PROBLEM'] }],
    conditions: [condition('Ready', 'False', 'ConfigurationProblem')],
  },
);
const SLEEPS = {
  ...READY,
  phase: 'Hibernated',
  conditions: [condition('Ready', 'False', 'Hibernated'), condition('Hibernated', 'True', 'NoControlPlane')],
};
const untouched = cluster('untouched', {}, undefined);
const deleting = cluster('going', {}, READY, { deletionTimestamp: AGO });

describe('the table of WorkerClusters', () => {
  const options = { wide: false, everywhere: true, now: NOW };
  it('has the columns that kubectl shows', () => {
    expect(
      tableOf(
        WORKER_CLUSTER_KIND,
        [simulated, creating, failed, untouched, deleting, cluster('demo', {}, READY)],
        options,
      ),
    ).toMatchInlineSnapshot(`
      [
        "NAMESPACE   NAME                  PROVIDER          MODE     VERSION   CONTROL-PLANE   NODES   READY     STATUS                      AGE",
        "default     bad                   nowhere                              0/1             0/2     False     ERR_CONFIGURATION_PROBLEM   2m",
        "default     demo                  local             Hosted   1.36.3    1/1             2/2     True      Ready                       2m",
        "default     going                 local             Hosted   1.36.3    1/1             2/2     True      Deleting                    2m",
        "default     new                   local             Hosted             0/1             0/2     False     Creating 62%                2m",
        "default     untouched             local                                0/1             0/2     Unknown   Pending                     2m",
        "team        demo-worker-cluster   aws (SIMULATED)   Hosted   1.36.3    3/3             20/20   True      Ready                       2m",
      ]
    `);
  });

  it('shows a cluster that hibernates as asked without alarm', () => {
    const asleep = cluster('nap', {}, SLEEPS);
    expect(summaryText(asleep)).toEqual({ text: 'Hibernated', tone: 'busy' });
    const { header, row } = columnsOf('WorkerCluster', false);
    expect(row(asleep, +NOW)[header.indexOf('READY')]).toEqual({ text: 'False', tone: 'busy' });
  });

  it('has more columns with -o wide', () => {
    expect(
      tableOf(WORKER_CLUSTER_KIND, [cluster('demo', {}, { ...READY, cost: COST }), creating], {
        ...options,
        everywhere: false,
        wide: true,
      }),
    ).toMatchInlineSnapshot(`
      [
        "NAME   PROVIDER   MODE     VERSION   CONTROL-PLANE   NODES   READY   STATUS         AGE   REGION   ENDPOINT                CPU   MEMORY   COST/H       ACCRUED     MESSAGE",
        "demo   local      Hosted   1.36.3    1/1             2/2     True    Ready          2m    here     https://10.0.0.1:6443   4     8Gi      1.1520 USD   35.16 USD",
        "new    local      Hosted             0/1             0/2     False   Creating 62%   2m                                                                             Waiting for kube-apiserver",
      ]
    `);
  });

  it('prints a Kubernetes List', () => {
    expect(listOf([])).toEqual({ apiVersion: 'v1', kind: 'List', metadata: { resourceVersion: '' }, items: [] });
  });
});

describe('what a cluster costs', () => {
  const texts = (cost: ClusterCost | undefined) => [
    hourlyText(cost),
    accruedText(cost, NOW),
    cost && costSentence(cost, NOW),
  ];
  it('accrued cost grows with time since the last write of the status', () => {
    expect(texts(COST)).toEqual([
      '1.1520 USD',
      '35.16 USD',
      '1.1520 USD an hour, about 840.96 USD a month, 35.16 USD so far',
    ]);
  });
  it('has a + when a part has no price, and ? when no part has one', () => {
    const unpriced = ['pool gpu: no price'];
    expect(texts({ ...COST, unpriced })[0]).toBe('1.1520+ USD');
    expect(texts({ unpriced })).toEqual(['?', undefined, 'not known: pool gpu: no price']);
    expect(texts(undefined)).toEqual([undefined, undefined, undefined]);
  });
});

describe('the table of quotas', () => {
  const status = {
    used: { nodes: '8', 'cost.hourly': '1.152' },
    conditions: [condition('Ready', 'True', 'Enforced'), condition('WithinLimits', 'False', 'AboveLimit', 'nodes 8/7')],
  };
  it('shows used and allowed amount of limited metrics', () => {
    expect(kindOf('quotas')).toBe(QUOTA_KIND);
    const lists = [quota({ nodes: 7, 'cost.hourly': '60' }, status)];
    expect(tableOf(QUOTA_KIND, lists, { wide: true, everywhere: false, now: NOW })).toMatchInlineSnapshot(`
      [
        "NAME   CLUSTERS   NODES   CPU   MEMORY   GPU   COST/H     COST/MONTH   READY   AGE   CURRENCY   MESSAGE",
        "team              8/7                          1.152/60                True    2m    USD        nodes 8/7",
      ]
    `);
    expect(tableOf(QUOTA_KIND, [quota({ clusters: 2 })], { wide: false, everywhere: false, now: NOW })[1]).toMatch(
      /^team +\?\/2 /,
    );
  });
});

describe('the summary of a cluster', () => {
  it('is not Ready while the status is about an earlier generation', () => {
    expect(isReady(cluster('demo', {}, READY))).toBe(true);
    expect(isReady(cluster('demo', {}, READY, { generation: 2 }))).toBe(false);
    expect(isReady(deleting)).toBe(false);
  });

  it('is not hibernated once the spec asks it to wake', () => {
    expect(isShownAsleep(cluster('nap', {}, SLEEPS))).toBe(true);
    expect(isShownAsleep(cluster('nap', {}, SLEEPS, { generation: 2 }))).toBe(false);
    const conditions = [condition('Ready', 'False', 'Hibernated'), condition('Hibernated', 'False', 'Waking')];
    expect(isShownAsleep(cluster('nap', {}, { ...SLEEPS, conditions }))).toBe(false);
  });

  it('is failed only for the generation that failed', () => {
    expect(clusterFailureOf(failed)).toBe('there is no CloudProfile "nowhere"');
    expect(clusterFailureOf(cluster('bad', {}, failed.status, { generation: 2 }))).toBeUndefined();
    expect(clusterFailureOf(creating)).toBeUndefined();
  });

  it('is failed when the spec is refused, even if nothing was tried', () => {
    const message = 'spec.region: there is no region "moon"';
    const lastTransitionTime = '2026-11-21T00:00:00Z';
    const conditions = [{ type: 'SpecAccepted', status: 'False' as const, message, lastTransitionTime }];
    const refused = { observedGeneration: 1, conditions };
    expect(clusterFailureOf(cluster('bad', {}, refused))).toBe(message);
    expect(clusterFailureOf(cluster('bad', {}, refused, { generation: 2 }))).toBeUndefined();
  });

  it('names the running activity', () => {
    expect(activityText(creating)).toBe('Waiting for kube-apiserver');
    expect(activityText(failed)).toBe('there is no CloudProfile "nowhere"');
    expect(activityText(untouched)).toBe('waiting for the operator');
    expect(summaryText(cluster('x', {}, { lastOperation: operation('Error', 10, 'x') })).text).toBe(
      'Creating (retrying)',
    );
  });

  it('warns about simulation', () => {
    expect(simulatedWarning(simulated)).toBe(
      'SIMULATED: nothing of WorkerCluster demo-worker-cluster exists at aws; its 20 nodes are pretended and run no workload.',
    );
    const message = 'SIMULATED: the control plane is real';
    const noted = { type: 'Simulated', status: 'True' as const, message, lastTransitionTime: '2026-11-26T00:00:00Z' };
    const one = cluster(
      'a',
      { cloudProvider: 'aws' },
      { nodes: { desired: 1, current: 1, ready: 1 }, conditions: [noted] },
    );
    expect(simulatedWarning(one)).toBe(
      'SIMULATED: nothing of WorkerCluster a exists at aws; its 1 node is pretended and runs no workload; the control plane is real',
    );
  });
});

describe('the live view', () => {
  const progress = { name: 'new', goal: 'Ready' as const, elapsedMs: 7000, state: 'busy' as const };
  it('shows progress, counts and errors', () => {
    const withError = cluster(
      'new',
      {},
      { ...creating.status, lastErrors: [{ description: 'image missing', codes: ['ERR_X'] }] },
    );
    expect(clusterLines({ ...progress, cluster: withError }, 100)).toEqual([
      '⠇ WorkerCluster new ━━━━━━━━━━──────  62 % Waiting for kube-apiserver (0:07)',
      '  control plane 0/1, nodes 0/2',
      '  ✘ image missing [ERR_X]',
    ]);
  });

  it('keeps the warning about simulation until the end', () => {
    const lines = clusterLines({ ...progress, name: 'demo-worker-cluster', cluster: simulated, state: 'done' }, 200);
    expect(lines[0]).toBe('✔ WorkerCluster demo-worker-cluster is Ready (0:07)');
    expect(lines[1]).toContain('SIMULATED');
  });

  it('has one line for logs', () => {
    expect(clusterLogLine({ ...progress, cluster: creating })).toBe(
      'WorkerCluster new: 62 % Waiting for kube-apiserver (control plane 0/1, nodes 0/2)',
    );
    expect(clusterLogLine({ ...progress, cluster: creating, trouble: 'connect ECONNREFUSED' })).toContain(
      'cannot read it',
    );
  });
});

describe('next steps after start', () => {
  it('are lines that work as printed', () => {
    const steps = nextSteps({
      cluster: cluster('demo', {}, READY),
      coppice: 'bin/coppice',
      kubectl: 'kubectl',
      example: 'examples/x.yaml',
    });
    expect(steps[1]).toMatch(/^ {2}bin\/coppice kubeconfig demo --merge +# /);
    expect(steps[2]).toMatch(/^ {2}kubectl --context coppice\/default\/demo get nodes +# /);
    expect(steps.join('\n')).toContain('bin/coppice scale demo --nodes 3');
  });
});
