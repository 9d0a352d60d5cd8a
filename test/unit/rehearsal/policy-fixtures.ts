import { ALPHA_API_VERSION } from '../../../operator/api/group.ts';
import type { KubeObject } from '../../../operator/api/meta.ts';
import { rehearse } from '../../../operator/rehearsal/rehearse.ts';
import { type Scenario, scenarioOf } from '../../../operator/rehearsal/scenario.ts';
import type { Entry } from '../../../operator/rehearsal/state.ts';
import { surveyTrace } from '../../../operator/rehearsal/survey.ts';
import { readTrace } from '../../../operator/rehearsal/trace/trace.ts';
import { cluster, file, profile } from './fixtures.ts';

export const SLOW = { controlPlane: { creation: { p50: '5m' } }, machines: { creation: { p50: '2m' } } };

export const policy = (more: object = {}): KubeObject => ({
  apiVersion: ALPHA_API_VERSION,
  kind: 'BurstPolicy',
  metadata: { name: 'peak', namespace: 'shop' },
  spec: {
    hub: 'production',
    candidates: [
      {
        name: 'public',
        template: {
          metadata: { labels: { tier: 'public' } },
          spec: { cloudProvider: 'cloud', pools: [{ name: 'workers', machineType: 'm', maximum: 4 }] },
        },
      },
    ],
    maximumClusters: 3,
    budget: { hourly: '10', currency: 'USD' },
    scaleIn: { idleFor: '10m', minimumLife: '30m' },
    ...more,
  },
});
/** Two nodes of 2 CPU, each with room for one replica of 1.5 CPU. */
export const STANDING = cluster('private', {
  mode: 'Hosted',
  dataPlaneNodes: undefined,
  pools: [{ name: 'servers', machineType: 'm', minimum: 2, maximum: 2 }],
});
export const HEADER = 'time,workload,replicas,jobs,cpu,memory,life,clusterLabels,cluster';

/** Plays a trace of workloads without its header. */
export async function playWork(
  rows: string,
  objects: readonly KubeObject[] = [STANDING, policy()],
  simulation: object = SLOW,
  header = HEADER,
) {
  const trace = file('work.csv', `${header}\n${rows}\n`);
  const manifests = objects.map((object) => ({ object, source: 'peak.yaml' }));
  const scenario = scenarioOf(manifests, [profile], { namespace: 'shop', simulations: { cloud: simulation } });
  const survey = await surveyTrace(readTrace(trace), scenario);
  const timeline: Entry[] = [];
  const options = { epoch: Date.UTC(2026, 0, 1), onEntry: (entry: Entry) => timeline.push({ ...entry }) };
  const report = await rehearse(scenario, readTrace(trace), survey, options);
  const clock = (at: number) => new Date(at).toISOString().slice(11, 19);
  const told = (...kinds: Entry['kind'][]) =>
    timeline
      .filter(({ kind }) => kinds.includes(kind))
      .map(({ at, kind, message }) => `${clock(at)} ${kind}: ${message}`);
  const again = (other: Scenario) => rehearse(other, readTrace(trace), survey, { epoch: options.epoch });
  return { report, told, timeline, scenario, survey, trace: () => readTrace(trace), options, again };
}
