import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { WorkerCluster } from '../../operator/api/workercluster.ts';
import { identityOf, isAlive, type ProcessIdentity } from '../../operator/garden/host/process-identity.ts';
import type { KubeClient } from '../../operator/kube/client.ts';
import {
  CLUSTERROLEBINDINGS,
  CONFIGMAPS,
  type KubeObject,
  PODS,
  type Pod,
  WORKERCLUSTERS,
} from '../../operator/kube/resources.ts';
import { e2e, temporaryFile } from '../kit/garden.ts';
import { leftOvers } from '../kit/left-overs.ts';
import { OwnGarden } from '../kit/own-garden.ts';
import { copyOfCoppice, runCommand } from '../kit/run.ts';
import { run } from '../kit/workload.ts';

const NAME = 'kept';
const HALF = 'half';
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

e2e('a garden that a person starts and stops', () => {
  let garden: OwnGarden;
  let manifest: string;
  let pressed: number;
  let stranger: ChildProcess | undefined;
  let otherVersion: string | undefined;

  beforeAll(async () => {
    garden = await OwnGarden.make();
    manifest = await temporaryFile('kept.yaml', MANIFEST);
  });
  afterAll(async () => {
    stranger?.kill('SIGKILL');
    await garden?.dispose();
    if (otherVersion) await rm(join(otherVersion, '../..'), { recursive: true, force: true });
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
  /** Of each cluster there is everything once, for that generation, with as many nodes. */
  const madeOnce = async (name: string, generation: number, nodes: number) => {
    await garden.ready(name, generation);
    const found = await garden.inventory(name);
    expect(found.machines).toHaveLength(nodes);
    expect(found.nodes).toEqual(found.machines);
    expect(
      [found.namespaces, found.etcdPods, found.etcdVolumes, found.etcdMembers].map(({ length }) => length),
    ).toEqual([1, 1, 1, 1]);
    return found;
  };
  const isUnderWay = (name: string) => garden.shoot(name)?.status?.lastOperation?.state === 'Processing';
  const cluster = (name: string) => garden.client.get<WorkerCluster>(WORKERCLUSTERS, name, 'default');
  const uidOf = async (name: string) => (await cluster(name)).metadata.uid;
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

  it('stops at Ctrl-C or when the terminal closes, during creation of its first cluster', async () => {
    const first = begin();
    await first.until(/WorkerCluster kept: +\d+ %/);
    pressed = Date.now();
    first.signal('SIGINT');
    expect(await first.code).toBe(130);
    expect(first.lastLine()).toMatch(/^Stopped\. Its clusters are kept in .*coppice start" starts them again/);
    await nothingRuns();

    const second = begin();
    await second.until(/WorkerCluster kept: +\d+ %/);
    second.hangUp();
    expect(await second.code).toBe(130);
    await nothingRuns();
  });

  it('continues after a stop: clusters being created or scaled, and running pods', async () => {
    await garden.up();
    await garden.connect();
    await garden.ready(NAME);
    const { metadata } = await cluster(NAME);
    expect(Date.parse(metadata.creationTimestamp!)).toBeLessThan(pressed);
    await inside(async (client) => {
      await client.create(NOTE);
      await run(client, { name: 'echo' });
    });
    const before = await madeOnce(NAME, 1, 1);
    const grown = await garden.apply(NAME, { controlPlaneNodes: 1, dataPlaneNodes: 2 });
    const half = await garden.apply(HALF, { controlPlaneNodes: 1, dataPlaneNodes: 0 });
    await garden.when('a cluster to be half made while another grows', () => {
      const machines = garden.pods(NAME).filter(({ metadata }) => metadata.name.startsWith('machines-'));
      return machines.length === 2 && garden.pods(HALF).length > 0 && isUnderWay(NAME) && isUnderWay(HALF);
    });
    // Who deletes it takes the rights from all kubeconfigs of administrators, until `coppice up`.
    await garden.client.delete(CLUSTERROLEBINDINGS, 'coppice:garden-admins');
    await garden.eventually(() => expect(cluster(NAME)).rejects.toMatchObject({ status: 403 }));
    const { code, stderr } = await garden.coppice(['stop']);
    expect(code, stderr).toBe(0);
    await nothingRuns();

    const stopped = Date.now();
    await garden.up();
    await garden.eventually(() => runsSince(stopped));
    const [made] = await Promise.all([
      madeOnce(NAME, grown.metadata.generation!, 2),
      madeOnce(HALF, half.metadata.generation!, 0),
    ]);
    expect(made.machines).toEqual(expect.arrayContaining(before.machines));
    for (const { metadata } of [grown, half]) expect(await uidOf(metadata.name)).toBe(metadata.uid);
  });

  it('restores the rights of its administrators at `coppice up` while it runs', async () => {
    await garden.client.delete(CLUSTERROLEBINDINGS, 'coppice:garden-admins');
    await garden.eventually(() => expect(cluster(NAME)).rejects.toMatchObject({ status: 403 }));
    expect((await garden.coppice(['get', 'workerclusters'])).stderr).toContain('"coppice up"');
    await garden.up();
    await garden.eventually(async () => void (await cluster(NAME)));
  });

  it('continues under another version of Coppice, which ends only processes that it starts differently', async () => {
    otherVersion = await copyOfCoppice();
    const pids = async () => {
      const { daemon, processes } = await garden.status();
      return new Map([['daemon', daemon.pid], ...processes.map(({ name, pid }) => [name, pid] as const)]);
    };
    const began = () => garden.pods(NAME).map(({ metadata, status }) => [metadata.uid, status?.containerStatuses]);
    const before = { pids: await pids(), began: began() };
    const { args, env } = garden.command(['up', '--detach']);
    const { code, stderr } = await runCommand(otherVersion, args, { env, timeoutMs: 5 * 60_000 });
    expect(code, stderr).toBe(0);
    expect(stderr).toContain('replacing the daemon of another version of Coppice');
    const after = await pids();
    expect(
      [...after]
        .filter(([name, pid]) => before.pids.get(name) !== pid)
        .map(([name]) => name)
        .sort(),
    ).toEqual(['daemon', 'image-mirror', 'operator']);
    await garden.ready(NAME);
    expect(began()).toEqual(before.began);
    await garden.up();
    expect((await pids()).get('operator')).not.toBe(after.get('operator'));
  });

  it('restores its cluster after a reboot, continues a deletion, and ends no process with a reused ID', async () => {
    const uid = await uidOf(NAME);
    await garden.client.delete(WORKERCLUSTERS, HALF, 'default');
    stranger = spawn('/bin/sleep', ['3600'], { detached: true, stdio: 'ignore' });
    await once(stranger, 'spawn');
    const identity = (await identityOf(stranger.pid!)) as ProcessIdentity;
    await garden.reboot(identity);
    await nothingRuns();

    const booted = Date.now();
    await garden.up();
    await garden.eventually(() => runsSince(booted));
    await garden.ready(NAME);
    expect(await uidOf(NAME)).toBe(uid);
    expect((await inside((client) => client.get(CONFIGMAPS, 'note', 'default'))).data).toEqual(NOTE.data);
    await garden.gone(HALF);
    expect(await isAlive(identity)).toBe(true);
    expect(await garden.down()).toEqual([]);
    expect(await isAlive(identity)).toBe(true);
  });
});
