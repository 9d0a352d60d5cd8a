import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { API_VERSION } from '../../../operator/api/group.ts';
import type { KubeObject } from '../../../operator/api/meta.ts';
import { type RehearsalOptions, rehearse } from '../../../operator/rehearsal/rehearse.ts';
import type { Report } from '../../../operator/rehearsal/report.ts';
import { scenarioOf } from '../../../operator/rehearsal/scenario.ts';
import type { Entry } from '../../../operator/rehearsal/state.ts';
import { surveyTrace } from '../../../operator/rehearsal/survey.ts';
import { readTrace } from '../../../operator/rehearsal/trace/trace.ts';
import type { TraceLine } from '../../../operator/rehearsal/trace/trace-line.ts';
import { buildCloudProfile } from '../../kit/builders/objects.ts';

export const HOUR = 3_600_000;

export const profile = buildCloudProfile({
  metadata: { name: 'cloud' },
  spec: {
    type: 'cloud',
    kubernetes: { versions: [{ version: '1.36.3', classification: 'supported' }] },
    defaults: { mode: 'Managed', region: 'north', machineType: 'm' },
    regions: [{ name: 'north', zones: [{ name: 'north-a' }, { name: 'north-b' }] }],
    machineTypes: [
      { name: 'm', cpu: 2, gpu: 0, memory: '8Gi', price: { hourly: '0.1', currency: 'USD', region: 'north' } },
      { name: 'l', cpu: 8, gpu: 0, memory: '32Gi' },
    ],
    controlPlaneFee: { hourly: '0.5', currency: 'USD' },
  },
});

export const cluster = (name: string, spec: object = {}, namespace = 'shop'): KubeObject => ({
  apiVersion: API_VERSION,
  kind: 'WorkerCluster',
  metadata: { name, namespace },
  spec: { cloudProvider: 'cloud', dataPlaneNodes: 2, ...spec },
});

/** A file that is gone when the test has finished. */
export function file(name: string, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'rehearsal-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, name), text);
  return join(folder, name);
}

export interface Played {
  report: Report;
  timeline: Entry[];
  /** `h:mm message` of each line of the timeline. */
  said: string[];
}

/** Plays a CSV trace without its header (time,cluster,event,dataPlaneNodes,pool,minimum,maximum). */
export async function play(
  rows: string,
  objects: readonly KubeObject[],
  simulation: object = {},
  options: Partial<RehearsalOptions> = {},
): Promise<Played> {
  const path = file('demand.csv', `time,cluster,event,dataPlaneNodes,pool,minimum,maximum\n${rows}`);
  return playLines(() => readTrace(path), objects, simulation, options);
}

export async function playLines(
  trace: () => AsyncIterable<TraceLine>,
  objects: readonly KubeObject[],
  simulation: object = {},
  options: Partial<RehearsalOptions> = {},
): Promise<Played> {
  const manifests = objects.map((object) => ({ object, source: 'clusters.yaml' }));
  const scenario = scenarioOf(manifests, [profile], { namespace: 'default', simulations: { cloud: simulation } });
  const timeline: Entry[] = [];
  const onEntry = (entry: Entry) => timeline.push({ ...entry });
  const survey = await surveyTrace(trace(), scenario);
  const epoch = Date.parse('2026-11-01T00:00:00Z');
  const report = await rehearse(scenario, trace(), survey, { epoch, onEntry, ...options });
  const clock = (at: number) => `${Math.floor(at / HOUR)}:${String(Math.floor(at / 60_000) % 60).padStart(2, '0')}`;
  return { report, timeline, said: timeline.map(({ at, message }) => `${clock(at)} ${message}`) };
}
