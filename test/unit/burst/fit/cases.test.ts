import { describe, expect, it } from 'vitest';
import { NOT_JUDGED } from '../../../../operator/burst/fit/not-judged.ts';
import { recordedCases } from '../../../kit/fit/cases.ts';
import { comparison } from '../../../kit/fit/compare.ts';

const { scheduler, cases } = recordedCases();
const compared = cases.map((one) => ({ ...one, ...comparison(one) }));
const judged = compared.filter(({ ours }) => ours.verdict !== 'NotJudged');
const described = (all: typeof compared) =>
  all.map(
    ({ name, verdict, message }) => `${name}: kube-scheduler says ${verdict ?? 'yes'}; we would have it say ${message}`,
  );

describe(`fit, beside what kube-scheduler ${scheduler} said of ${cases.length} cases`, () => {
  it('is compared on a thousand, of which between a third and two thirds fit', () => {
    expect(cases.length).toBeGreaterThanOrEqual(1000);
    const share = cases.filter(({ verdict }) => verdict === null).length / cases.length;
    expect(share).toBeGreaterThan(1 / 3);
    expect(share).toBeLessThan(2 / 3);
  });

  it('never says that a pod fits where the scheduler says no', () => {
    const wrong = judged.filter(({ ours, verdict }) => ours.verdict === 'Fits' && verdict !== null);
    expect(described(wrong)).toEqual([]);
  });

  it('says wrongly in at most 5 % of them that a pod does not fit', () => {
    const wrong = judged.filter(({ ours, verdict }) => ours.verdict === 'DoesNotFit' && verdict === null);
    expect(described(wrong).slice(0, cases.length * 0.05)).toEqual(described(wrong));
  });

  it('says no for the reasons of the scheduler, on every node', () => {
    const other = judged.filter(({ ours, verdict, message }) => ours.verdict === 'DoesNotFit' && verdict !== message);
    expect(described(other)).toEqual([]);
  });

  it('leaves few of them unjudged, each for a reason of the list', () => {
    const left = compared.flatMap(({ ours }) => (ours.verdict === 'NotJudged' ? [ours.reasons] : []));
    expect(left.length).toBeLessThan(cases.length * 0.03);
    expect(left.flat().filter((reason) => !(reason in NOT_JUDGED))).toEqual([]);
  });
});
