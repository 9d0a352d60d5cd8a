import { expect, it } from 'vitest';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { CliError } from '../../../operator/cli/errors.ts';
import { judgeWait } from '../../../operator/cli/waiting.ts';
import { cluster, condition, READY } from './objects.ts';

const ready = cluster('c', {}, READY);
const creating = cluster('c', {}, { conditions: [condition('Ready', 'False', 'Creating', 'not yet')] });
const refused = cluster(
  'c',
  {},
  {
    ...READY,
    conditions: [...READY.conditions!, condition('SpecAccepted', 'False', 'Impossible', 'no such zone')],
  },
);
const asleep = cluster(
  'c',
  {},
  {
    conditions: [
      condition('Ready', 'False', 'Hibernated', 'sleeps'),
      condition('Hibernated', 'True', 'Hibernated', 'sleeps'),
    ],
  },
);

interface Sight {
  cluster?: WorkerCluster;
  existed?: boolean;
  goal?: 'Ready' | 'Deleted';
  mayAppear?: boolean;
  maySleep?: boolean;
}

it.each<[string, Sight, string | RegExp]>([
  ['for one that is being made', { cluster: creating }, 'wait'],
  ['no longer than until a Ready one serves', { cluster: ready }, 'serves'],
  ['for one that is still there to be gone', { cluster: ready, goal: 'Deleted' }, 'wait'],
  ['no longer for one that is gone', { goal: 'Deleted', existed: true }, 'finish'],
  ['not for one that nobody has made', {}, /there is no WorkerCluster "c" in namespace n/],
  ['for one that is about to be made', { mayAppear: true }, 'wait'],
  ['not for one that was deleted meanwhile', { existed: true, mayAppear: true }, /was deleted in the meantime/],
  ['not for a change that is refused, though the cluster stays Ready', { cluster: refused }, /failed: no such zone/],
  ['for one that sleeps to wake', { cluster: asleep }, 'wait'],
  ['not for one that may sleep', { cluster: asleep, maySleep: true }, 'finish'],
])('waits %s', (_, { cluster, existed = false, goal = 'Ready', ...may }, expected) => {
  const verdict = judgeWait(cluster, existed, 'n', { name: 'c', goal, ...may });
  const said = verdict instanceof CliError ? verdict.message : verdict;
  if (typeof expected === 'string') expect(said).toBe(expected);
  else expect(said).toMatch(expected);
});
