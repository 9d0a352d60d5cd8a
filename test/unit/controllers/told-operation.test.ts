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

it.each([
  ['how long it will take', 'about 12 s left', [], 'Waiting for the API server (about 12 s left)'],
  [
    'what holds a pod, and no time that is none',
    'about 12 s left',
    [problem, problem],
    'Waiting for the API server: pod kube-apiserver-1 cannot start: ImageIsMade: about 14 min left',
  ],
  ['nothing more where it does not run', undefined, [problem], 'Waiting for the API server'],
])('an operation tells %s', (_, timeLeft, problems, description) => {
  expect(toldOperation(operation, timeLeft, problems)).toEqual({ ...operation, description });
});
