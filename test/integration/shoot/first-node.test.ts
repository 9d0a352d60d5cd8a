import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PODS, type Pod } from '../../../operator/kube/resources.ts';
import { schedulerConfiguration } from '../../../operator/shoot/kube-scheduler.ts';
import { startApiserver, type TestApiserver } from '../../kit/apiserver.ts';
import { addNode } from '../../kit/hubs/hub-testbed.ts';
import { Processes } from '../../kit/hubs/processes.ts';
import { testTools } from '../../kit/tools.ts';

let processes: Processes;
let server: TestApiserver;

beforeAll(async () => {
  processes = await Processes.begin('first-node');
  // They wait for controllers that are not there.
  server = await startApiserver({ flags: ['--disable-admission-plugins=ServiceAccount,TaintNodesByCondition'] });
  const kubeconfig = await processes.file('kubeconfig', server.kubeconfig);
  const configuration = await processes.file('config.json', JSON.stringify(schedulerConfiguration(kubeconfig)));
  const { 'kube-scheduler': binary } = await testTools('kube-scheduler');
  processes.run(binary, 'scheduler', [`--config=${configuration}`, '--leader-elect=false', '--secure-port=0', '--v=2']);
});
afterAll(async () => {
  await processes.stop();
  await server.stop();
});

it('a pod that waited long for a first node is scheduled within seconds, not after ten', async () => {
  const { client } = server;
  const containers = [{ name: 'one', image: 'pause' }];
  await client.create({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'waits', namespace: 'default' },
    spec: { containers },
  });
  const tried = async () =>
    (await readFile(join(processes.directory, 'scheduler.log'), 'utf8')).split('no nodes are registered').length - 1;
  // Each time twice as long as the time before, were it left to the scheduler.
  await expect.poll(tried, { timeout: 120_000 }).toBeGreaterThanOrEqual(5);
  await addNode(server, 'first', '1', '1Gi');
  const isPlaced = async () => (await client.get<Pod>(PODS, 'waits', 'default')).spec.nodeName;
  await expect.poll(isPlaced, { timeout: 6_000, interval: 50 }).toBe('first');
});
