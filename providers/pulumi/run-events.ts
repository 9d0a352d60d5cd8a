import { isDeepStrictEqual } from 'node:util';
import type { EngineEvent, StepEventMetadata } from '@pulumi/pulumi/automation/index.js';
import type { Change, CloudProgress } from '../cloud.ts';
import type { PlannedResource } from './settlement.ts';
import { isInCloud, resourceNameOf, STACK_TYPE } from './stack-state.ts';

/** Events of the engine that leave a worker. */
export type RunEvent =
  | { kind: 'started' | 'done' | 'failed'; step: RunStep }
  /** Outputs of the program, with placeholders for secret and unknown values. */
  | { kind: 'outputs'; outputs: Record<string, unknown> }
  | { kind: 'error'; text: string; urn?: string };

/** One step of a run on one resource. */
interface RunStep {
  /** The engine's operation: create, update, same, refresh, create-replacement, ... */
  operation: string;
  resource: PlannedResource;
  /** Differing properties. */
  properties: string[];
  /** A refresh found a difference to the state. */
  isOutdated?: true;
}

/** Accumulated report of a run. */
export interface RunReport {
  /** By URN: a replacement has several steps on one. */
  changes: Map<string, Change>;
  underWay: Map<string, RunStep>;
  /** URNs of finished cloud resources, including unchanged ones. */
  done: Set<string>;
  planned: PlannedResource[];
  failed: RunStep[];
  errors: { text: string; urn?: string }[];
  outputs: Record<string, unknown>;
  /** Whether anything differs, including resources that exist in the state only, and refresh results. */
  isChanging: boolean;
}

export const newReport = (): RunReport => ({
  changes: new Map(),
  underWay: new Map(),
  done: new Set(),
  planned: [],
  failed: [],
  errors: [],
  outputs: {},
  isChanging: false,
});

const REPLACING = new Set(['replace', 'create-replacement', 'delete-replaced', 'import-replacement']);
const CHANGING = new Set(['create', 'update', 'delete', 'import']);
/** Steps without changes in the cloud. */
const IDLE = new Set(['same', 'refresh', 'read']);
const CREATING = new Set(['create', 'create-replacement']);

const DOING: Record<string, string> = {
  create: 'creating',
  update: 'updating',
  delete: 'deleting',
  replace: 'replacing',
  'create-replacement': 'replacing',
  'delete-replaced': 'deleting the old',
  import: 'adopting',
  refresh: 'looking at',
};

/** The relevant part of an engine event. Pure. */
export function runEventOf(event: EngineEvent): RunEvent | undefined {
  if (event.resourcePreEvent) return { kind: 'started', step: stepOf(event.resourcePreEvent.metadata) };
  if (event.resOutputsEvent) {
    const { metadata } = event.resOutputsEvent;
    if (metadata.type === STACK_TYPE) return { kind: 'outputs', outputs: metadata.new?.outputs ?? {} };
    return { kind: 'done', step: stepOf(metadata) };
  }
  if (event.resOpFailedEvent) return { kind: 'failed', step: stepOf(event.resOpFailedEvent.metadata) };
  // Debug messages contain all values of all resources.
  if (event.diagnosticEvent?.severity === 'error') {
    const { message, urn } = event.diagnosticEvent;
    return { kind: 'error', text: message, ...(urn && { urn }) };
  }
  return undefined;
}

function stepOf({ op, urn, type, new: after, old, diffs, detailedDiff }: StepEventMetadata): RunStep {
  const state = after ?? old;
  const creates = CREATING.has(op);
  const isOutdated =
    op === 'refresh' &&
    !(isDeepStrictEqual(after?.inputs, old?.inputs) && isDeepStrictEqual(after?.outputs, old?.outputs));
  return {
    operation: op,
    resource: {
      urn,
      type,
      // The engine omits `custom` when false.
      custom: state?.custom ?? false,
      ...(state?.parent && { parent: state.parent }),
      ...(state?.provider && { provider: state.provider }),
      ...(creates && state?.inputs && { inputs: state.inputs }),
    },
    properties: [...new Set([...(diffs ?? []), ...Object.keys(detailedDiff ?? {})])].map(
      (path) => path.split(/[.[]/)[0]!,
    ),
    ...(isOutdated && { isOutdated }),
  };
}

/** Adds an event to the report of a run. */
export function noteEvent(record: RunReport, event: RunEvent): void {
  if (event.kind === 'error') {
    record.errors.push({ text: event.text, ...(event.urn && { urn: event.urn }) });
    return;
  }
  if (event.kind === 'outputs') {
    record.outputs = event.outputs;
    return;
  }
  const { step } = event;
  const { urn } = step.resource;
  record.isChanging ||= !IDLE.has(step.operation);
  if (event.kind === 'started') {
    record.underWay.set(urn, step);
    if (CREATING.has(step.operation)) record.planned.push(step.resource);
    return;
  }
  record.underWay.delete(urn);
  // Must be written to the state: otherwise the next plan compares with stale values.
  record.isChanging ||= step.isOutdated === true;
  if (event.kind === 'failed') {
    record.failed.push(step);
    return;
  }
  if (isInCloud(step.resource) && step.operation !== 'refresh') record.done.add(urn);
  noteChange(record.changes, step);
}

function noteChange(changes: Map<string, Change>, { operation, resource, properties }: RunStep): void {
  if (!isInCloud(resource)) return;
  const isReplacing = REPLACING.has(operation);
  if (!isReplacing && !CHANGING.has(operation)) return;
  const before = changes.get(resource.urn);
  const all = [...new Set([...(before?.properties ?? []), ...properties])];
  changes.set(resource.urn, {
    operation: isReplacing ? 'replace' : operation,
    resource: label(resource),
    ...(all.length > 0 && { properties: all }),
  });
}

/** Type and logical name. */
const label = ({ type, urn }: { type: string; urn: string }): string => `${type} ${resourceNameOf(urn)}`;

/** Progress of a run. `total`: number of resources, if known. Pure. */
export function runProgressOf(record: RunReport, total: number | undefined): CloudProgress | undefined {
  const doing = [...record.underWay.values()].filter(
    ({ operation, resource }) => DOING[operation] !== undefined && isInCloud(resource),
  );
  const [first, ...others] = doing;
  if (!first) return undefined;
  const more = others.length > 0 ? ` and ${others.length} more` : '';
  const done = record.done.size;
  return {
    description: `${DOING[first.operation]} ${label(first.resource)}${more}`,
    done,
    ...(total !== undefined && total > 0 && { total: Math.max(total, done + doing.length) }),
  };
}
