import { expect, it } from 'vitest';
import type { LastOperation } from '../../../operator/api/meta.ts';
import { toldOperation } from '../../../operator/controllers/shoot/status/told-operation.ts';

const operation: LastOperation = {
  type: 'Create',
  state: 'Processing',
  progress: 1,
  description: 'Waiting for the API server',
  lastUpdateTime: '2026-11-25T00:00:00Z',
};
const problem = { pod: 'kube-apiserver-1', reason: 'ImageIsMade', message: 'about 14 min left', machine: false };

const told = { ms: 11_200, at: new Date(0) };

it.each([
  ['how long it will take', told, 20, [], 'Waiting for the API server (about 12 s left)'],
  ['that it takes longer than that', told, 40, [], 'Waiting for the API server (longer than usual)'],
  [
    'what holds a pod, and no time that is none',
    told,
    40,
    [problem, problem],
    'Waiting for the API server: pod kube-apiserver-1 cannot start: ImageIsMade: about 14 min left',
  ],
  ['nothing more where it does not run', undefined, 0, [problem], 'Waiting for the API server'],
])('an operation tells %s', (_, timeLeft, seconds, problems, description) => {
  expect(toldOperation(operation, timeLeft, new Date(seconds * 1000), problems)).toEqual({ ...operation, description });
});
