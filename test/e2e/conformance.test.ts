import { readFile } from 'node:fs/promises';
import { local } from '../../providers/local/index.ts';
import { localTestbed } from '../kit/conformance/local-testbed.ts';
import { keepsMachines } from '../kit/conformance/machines.ts';
import { e2e, garden } from '../kit/garden.ts';

e2e('the conformance of providers', () => {
  keepsMachines('in a real seed', local, async () =>
    localTestbed(await readFile(garden.kubeconfig, 'utf8'), [
      { namespace: 'shop', name: 'blue' },
      { namespace: 'n'.repeat(63), name: 'blue' },
    ]),
  );
});
