import { expect, it } from 'vitest';
import { COMPONENTS } from '../../../operator/api/names.ts';
import { runsAPIServer } from '../../../operator/controllers/shoot/connect.ts';

const running = { running: {} };
const waiting = { waiting: { reason: 'ContainerCreating' } };
const pod = (...containers: [name: string, state: object][]) => ({
  status: { containerStatuses: containers.map(([name, state]) => ({ name, state })) },
});

it.each([
  [
    'its own container runs, whatever comes first',
    pod(['cluster-network', waiting], [COMPONENTS.apiServer, running]),
    true,
  ],
  ['only its network runs', pod(['cluster-network', running], [COMPONENTS.apiServer, waiting]), false],
  // kubeadm runs the API server in there: no container of the pod is called so.
  ['the pod is a machine that runs', pod(['machine', running]), true],
  ['the pod is a machine that does not run yet', pod(['machine', waiting]), false],
  ['nothing is known of it yet', {}, false],
])('an API server may be asked when its pod runs: %s', (_, seen, expected) => {
  expect(runsAPIServer(seen as never)).toBe(expected);
});
