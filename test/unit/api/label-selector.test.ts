import { describe, expect, it } from 'vitest';
import { type LabelSelector, matchesLabels } from '../../../operator/api/label-selector.ts';

const labels = { app: 'web', tier: 'front' };
const asks = (key: string, operator: string, values?: string[]): LabelSelector => ({
  matchExpressions: [{ key, operator, ...(values && { values }) }],
});

describe('matchesLabels', () => {
  it.each<[string, LabelSelector, boolean]>([
    ['that asks for nothing is met', {}, true],
    ['is met by labels that have all of its own', { matchLabels: { app: 'web', tier: 'front' } }, true],
    ['is not met by other values', { matchLabels: { app: 'db' } }, false],
    ['is met where every part of it is', { matchLabels: { app: 'web' }, ...asks('tier', 'Exists') }, true],
    ['is not met where one part of it is not', { matchLabels: { app: 'web' }, ...asks('tier', 'DoesNotExist') }, false],
    ['finds a value in a list', asks('app', 'In', ['db', 'web']), true],
    ['misses a value in a list', asks('app', 'In', ['db']), false],
    ['refuses a value in a list', asks('app', 'NotIn', ['web']), false],
    ['is met by a label that is not there, where values are refused', asks('none', 'NotIn', ['web']), true],
    ['with an operator that there is not is never met', asks('app', 'Like', ['web']), false],
    ['takes no member of objects for a label', asks('constructor', 'Exists'), false],
  ])('%s', (_, selector, met) => {
    expect(matchesLabels(labels, selector)).toBe(met);
  });
});
