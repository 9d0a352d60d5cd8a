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

describe(`fit, compared with kube-scheduler ${scheduler} in ${cases.length} cases`, () => {
  it('covers a thousand cases, of which between a third and two thirds fit', () => {
    expect(cases.length).toBeGreaterThanOrEqual(1000);
    const share = cases.filter(({ verdict }) => verdict === null).length / cases.length;
    expect(share).toBeGreaterThan(1 / 3);
    expect(share).toBeLessThan(2 / 3);
  });

  it('never says that a pod fits where the scheduler refuses it', () => {
    const wrong = judged.filter(({ ours, verdict }) => ours.verdict === 'Fits' && verdict !== null);
    expect(described(wrong)).toEqual([]);
  });

  it('wrongly says that a pod does not fit in at most 5 % of the cases', () => {
    const wrong = judged.filter(({ ours, verdict }) => ours.verdict === 'DoesNotFit' && verdict === null);
    expect(described(wrong).slice(0, cases.length * 0.05)).toEqual(described(wrong));
  });

  it("refuses for the scheduler's reasons, on every node", () => {
    const other = judged.filter(({ ours, verdict, message }) => ours.verdict === 'DoesNotFit' && verdict !== message);
    expect(described(other)).toEqual([]);
  });

  it('leaves few cases unjudged, each for a listed reason', () => {
    const left = compared.flatMap(({ ours }) => (ours.verdict === 'NotJudged' ? [ours.reasons] : []));
    expect(left.length).toBeLessThan(cases.length * 0.03);
    expect(left.flat().filter((reason) => !(reason in NOT_JUDGED))).toEqual([]);
  });
});
