import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { WorkerCluster } from '../../operator/api/workercluster.ts';
import { identityOf, isAlive, type ProcessIdentity } from '../../operator/garden/process-identity.ts';
import type { KubeClient } from '../../operator/kube/client.ts';
import { CONFIGMAPS, type KubeObject, PODS, type Pod, WORKERCLUSTERS } from '../../operator/kube/resources.ts';
import { e2e, temporaryFile } from '../kit/garden.ts';
import { leftOvers } from '../kit/left-overs.ts';
import { OwnGarden } from '../kit/own-garden.ts';
import { run } from '../kit/workload.ts';

const NAME = 'kept';
const MANIFEST = `apiVersion: multi-cluster.demo.io/v1
kind: WorkerCluster
metadata: {name: ${NAME}}
spec: {cloudProvider: local, controlPlaneNodes: 1, dataPlaneNodes: 1}
`;
const NOTE: KubeObject = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'note', namespace: 'default' },
  data: { key: 'value' },
};

e2e('a garden of somebody who starts and stops it', () => {
  let garden: OwnGarden;
  let manifest: string;
  let uid: string | undefined;
  let stranger: ChildProcess | undefined;

  beforeAll(async () => {
    garden = await OwnGarden.make();
    manifest = await temporaryFile('kept.yaml', MANIFEST);
  });
  afterAll(async () => {
    stranger?.kill('SIGKILL');
    await garden?.dispose();
  });

  /** `coppice start` at a terminal: what is pressed there reaches all that it runs. */
  function begin() {
    const { file, args, env } = garden.command(['start', '--no-egress', '-f', manifest]);
    const child = spawn(file, args, { env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        said += text;
      });
    }
    const code = once(child, 'exit').then(([code]) => code as number | null);
    const signal = (name: NodeJS.Signals) => process.kill(-child.pid!, name);
    return {
      code,
      signal,
      lastLine: () => said.trimEnd().split('\n').at(-1),
      until: (text: RegExp) => garden.eventually(async () => expect(said).toMatch(text)),
      hangUp: () => {
        child.stdout.destroy();
        child.stderr.destroy();
        signal('SIGHUP');
      },
    };
  }
  const nothingRuns = async () =>
    expect(await leftOvers(garden.directory)).toEqual([`folder ${garden.directory.root}`]);
  const cluster = () => garden.client.get<WorkerCluster>(WORKERCLUSTERS, NAME, 'default');
  const inside = async <T>(ask: (client: KubeClient) => Promise<T>): Promise<T> => {
    const client = await garden.clusterClient(NAME);
    try {
      return await ask(client);
    } finally {
      await client.close();
    }
  };
  /** The pod that was made before runs, and began to after that. */
  const runsSince = (since: number) =>
    inside(async (client) => {
      const { items } = await client.list<Pod>(PODS, { namespace: 'default', labelSelector: 'app=echo' });
      expect(items).toHaveLength(1);
      const [status] = items[0]!.status?.containerStatuses ?? [];
      const { startedAt = '' } = (status?.state?.running ?? {}) as { startedAt?: string };
      expect(Date.parse(startedAt)).toBeGreaterThan(since - 1_000);
    });

  it('stops at Ctrl-C while its first cluster is made, goes on with that, and stops when the terminal is closed', async () => {
    const first = begin();
    await first.until(/WorkerCluster kept: +\d+ %/);
    const pressed = Date.now();
    first.signal('SIGINT');
    expect(await first.code).toBe(130);
    expect(first.lastLine()).toMatch(/^Stopped\. Its clusters are kept in .*coppice start" starts them again/);
    await nothingRuns();

    const second = begin();
    await second.until(/Ctrl-C to stop the garden/);
    await garden.connect();
    const { metadata } = await cluster();
    expect(Date.parse(metadata.creationTimestamp!)).toBeLessThan(pressed);
    uid = metadata.uid;
    await inside(async (client) => {
      await client.create(NOTE);
      await run(client, { name: 'echo' });
    });
    second.hangUp();
    expect(await second.code).toBe(0);
    await nothingRuns();
  });

  it('has its clusters again after a reboot, with what was in them, and ends nobody who has a number of before', async () => {
    await garden.up();
    await garden.ready(NAME);
    stranger = spawn('/bin/sleep', ['3600'], { detached: true, stdio: 'ignore' });
    await once(stranger, 'spawn');
    const identity = (await identityOf(stranger.pid!)) as ProcessIdentity;
    await garden.reboot(identity);
    await nothingRuns();

    const booted = Date.now();
    await garden.up();
    await garden.eventually(() => runsSince(booted));
    await garden.ready(NAME);
    expect((await cluster()).metadata.uid).toBe(uid);
    expect((await inside((client) => client.get(CONFIGMAPS, 'note', 'default'))).data).toEqual(NOTE.data);
    expect(await isAlive(identity)).toBe(true);
    expect(await garden.down()).toEqual([]);
    expect(await isAlive(identity)).toBe(true);
  });
});
