import type { LabelSelector } from '../../api/label-selector.ts';
import type { FitPod, Labels, Matches } from './model.ts';

interface Requirement {
  key: string;
  operator: string;
  values?: readonly string[];
}

export interface NodeSelectorTerm {
  matchExpressions?: readonly Requirement[];
  matchFields?: readonly Requirement[];
}

type AcceptsNode = FitPod['acceptsNode'];

const INTEGER = /^[+-]?\d{1,19}$/;

/** Value of a label; undefined: absent. Own properties only: `constructor` is a valid label key. */
export const labelOf = (labels: Labels, key: string): string | undefined =>
  Object.hasOwn(labels, key) ? labels[key] : undefined;

function requirement({ key, operator, values = [] }: Requirement): Matches {
  const set = new Set(values);
  switch (operator) {
    case 'In':
      return (labels) => {
        const value = labelOf(labels, key);
        return value !== undefined && set.has(value);
      };
    case 'NotIn':
      return (labels) => {
        const value = labelOf(labels, key);
        return value === undefined || !set.has(value);
      };
    case 'Exists':
      return (labels) => labelOf(labels, key) !== undefined;
    case 'DoesNotExist':
      return (labels) => labelOf(labels, key) === undefined;
    case 'Gt':
    case 'Lt':
      return (labels) => {
        const [value, bound] = [labelOf(labels, key), values[0]];
        if (value === undefined || bound === undefined || !INTEGER.test(value) || !INTEGER.test(bound)) return false;
        return operator === 'Gt' ? BigInt(value) > BigInt(bound) : BigInt(value) < BigInt(bound);
      };
    default:
      return () => false;
  }
}

/** Conjunction. */
export function allOf(conditions: readonly Matches[]): Matches {
  if (conditions.length === 0) return () => true;
  if (conditions.length === 1) return conditions[0]!;
  return (labels) => conditions.every((holds) => holds(labels));
}

const equals = (labels: Labels): Matches[] =>
  Object.entries(labels).map(
    ([key, value]) =>
      (others) =>
        labelOf(others, key) === value,
  );

/** Compiles a label selector: absent matches nothing, an empty one everything. */
export function labelSelector(selector: LabelSelector | undefined): Matches {
  if (!selector) return () => false;
  return allOf([...equals(selector.matchLabels ?? {}), ...(selector.matchExpressions ?? []).map(requirement)]);
}

/** A label (`key=value`) that every match of the selector has; undefined: none. For indexes only. */
export function labelNeeded(selector: LabelSelector | undefined): string | undefined {
  const [first] = Object.entries(selector?.matchLabels ?? {});
  if (first) return `${first[0]}=${first[1]}`;
  const one = selector?.matchExpressions?.find(({ operator, values }) => operator === 'In' && values?.length === 1);
  return one && `${one.key}=${one.values![0]}`;
}

/** Whether the selector exists and is empty. */
export const isEmptySelector = (selector: LabelSelector | undefined): boolean =>
  selector !== undefined &&
  Object.keys(selector.matchLabels ?? {}).length === 0 &&
  (selector.matchExpressions ?? []).length === 0;

/** Compiles node selector terms, of which one must match; no terms match no node, nor does an empty term. */
export function nodeSelectorTerms(terms: readonly NodeSelectorTerm[]): AcceptsNode {
  const compiled = terms
    .filter(({ matchExpressions = [], matchFields = [] }) => matchExpressions.length + matchFields.length > 0)
    .map(({ matchExpressions = [], matchFields = [] }) => ({
      labels: allOf(matchExpressions.map(requirement)),
      // The API server only accepts field metadata.name.
      fields: allOf(matchFields.map(requirement)),
      hasFields: matchFields.length > 0,
    }));
  return (node) =>
    compiled.some(
      ({ labels, fields, hasFields }) => labels(node.labels) && (!hasFields || fields({ 'metadata.name': node.name })),
    );
}

/** Compiles nodeSelector and required node affinity of a pod. */
export function nodeRequirement(
  selector: Labels | undefined,
  terms: readonly NodeSelectorTerm[] | undefined,
): AcceptsNode {
  const bySelector = allOf(equals(selector ?? {}));
  if (!terms) return (node) => bySelector(node.labels);
  const byTerms = nodeSelectorTerms(terms);
  return (node) => bySelector(node.labels) && byTerms(node);
}
