import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, createServer as createNetServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { seedSpec } from '../../../operator/api/seed.ts';
import { localSeed } from '../../../operator/garden/daemon/manifests.ts';
import { whyNoNamespaces } from '../../../operator/garden/host/capabilities.ts';
import { run } from '../../../operator/garden/host/command.ts';
import { chooseRanges } from '../../../operator/garden/host/ranges.ts';
import { Supervisor } from '../../../operator/garden/processes/supervisor.ts';
import { containerdConfig, runcAsOneUser } from '../../../operator/garden/seed/containerd-config.ts';
import type { GardenOfSeed } from '../../../operator/garden/seed/garden-of-seed.ts';
import { kubeletConfig } from '../../../operator/garden/seed/node.ts';
import { connectInSeed, NodePorts, nodePortsOf } from '../../../operator/garden/seed/node-ports.ts';
import { HOLDER, rootlessNamespaces, SEED_PROXY } from '../../../operator/garden/seed/rootless-namespaces.ts';
import { StateDirectory } from '../../../operator/garden/state/state.ts';
import { KubeClient } from '../../../operator/kube/client.ts';
import { silent } from '../../../operator/kube/log.ts';
import type { Service } from '../../../operator/kube/resources.ts';

const ranges = chooseRanges('abc', [])!;

it('a rootless seed requires nothing that needs root', () => {
  const options = { pauseImage: 'pause', pluginFolder: '/cni', restrictOomScore: true };
  const rootless = containerdConfig({ ...options, rootlessRunc: '/state/runc' });
  expect(rootless).toContain('disable_apparmor = true');
  expect(rootless).toContain('BinaryName = "/state/runc"');
  // The node of a garden that root has is as it was.
  expect(containerdConfig(options)).not.toMatch(/disable_apparmor|BinaryName/);
  const kubelet = kubeletConfig({ nodeAddress: '10.1.2.3', cgroup: undefined, pki: String, resolvConf: '/r' });
  expect(kubelet).toMatchObject({ cgroupsPerQOS: false, featureGates: { KubeletInUserNamespace: true } });
  expect(kubelet).not.toHaveProperty('cgroupRoot');
});

it('a rootless seed runs containers as its only user and without cgroups', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'coppice-runc-'));
  try {
    const bundle = join(folder, 'config.json');
    // As containerd writes it: without blanks, and in this order.
    const spec = {
      process: { user: { uid: 65532, gid: 65532 }, env: ['NOTE={"resources":{}}'] },
      mounts: [{ destination: '/dev/pts', options: ['newinstance', 'gid=5'] }],
      linux: {
        sysctl: { 'net.ipv4.ping_group_range': '0 0' },
        resources: { devices: [{ allow: false }], memory: { limit: 1 }, unified: { 'memory.high': '1' } },
        cgroupsPath: '/k8s.io/abc',
        namespaces: [{ type: 'pid' }],
      },
    };
    await writeFile(bundle, JSON.stringify(spec));
    const [wrapper, log] = [join(folder, 'wrapper'), join(folder, "runc's log")];
    await writeFile(join(folder, "o'runc"), `#!/bin/sh\necho "$@" >'${log.replace("'", "'\\''")}'`, { mode: 0o755 });
    await writeFile(wrapper, runcAsOneUser(join(folder, "o'runc")), { mode: 0o755 });
    await run([wrapper, 'create', '--bundle', folder, 'abc']);
    expect(await readFile(log, 'utf8')).toBe(`create --bundle ${folder} abc\n`);
    expect(JSON.parse(await readFile(bundle, 'utf8'))).toEqual({
      process: { user: { uid: 0, gid: 0 }, env: spec.process.env },
      mounts: [{ destination: '/dev/pts', options: ['newinstance'] }],
      linux: { sysctl: spec.linux.sysctl, namespaces: spec.linux.namespaces },
    });
  } finally {
    await rm(folder, { recursive: true });
  }
});

it('a rootless seed exposes API servers on the loopback', () => {
  const { spec } = localSeed(ranges, { url: 'http://10.0.0.1:5000' }, true);
  expect(seedSpec.safeParse(spec).error).toBeUndefined();
  expect(spec.exposure).toEqual({ type: 'NodePort', address: '127.0.0.1' });
  const service = (name: string, type: string, nodePort?: number): Service => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'shoot' },
    spec: { type, ports: [{ port: 6443, ...(nodePort && { nodePort }) }] },
  });
  expect([...nodePortsOf([service('a', 'NodePort', 30001), service('b', 'ClusterIP')])]).toEqual([[30001, 'shoot/a']]);
});

it('a rootless seed replaces a node port that another program uses', async () => {
  const other = createNetServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const taken = (other.address() as AddressInfo).port;
  const service = (nodePort: number, resourceVersion = '5') => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'a', namespace: 'shoot', resourceVersion },
    spec: { type: 'NodePort', ports: [{ name: 'https', port: 6443, nodePort }] },
  });
  const moved = Promise.withResolvers<number>();
  const server = createServer((request, response) => {
    response.setHeader('content-type', 'application/json');
    if (request.method === 'PATCH') {
      request.setEncoding('utf8').on('data', (text) => {
        const { metadata, spec } = JSON.parse(text);
        expect(metadata.resourceVersion).toBe('5');
        expect(spec.ports).toEqual([{ name: 'https', port: 6443, nodePort: expect.any(Number) }]);
        const object = service(spec.ports[0].nodePort, '6');
        watcher?.write(`${JSON.stringify({ type: 'MODIFIED', object })}\n`);
        response.end(JSON.stringify(object));
        moved.resolve(spec.ports[0].nodePort);
      });
      return;
    }
    watcher = response;
    response.write(`${JSON.stringify({ type: 'ADDED', object: service(taken) })}\n`);
    const metadata = { resourceVersion: '5', annotations: { 'k8s.io/initial-events-end': 'true' } };
    response.write(
      `${JSON.stringify({ type: 'BOOKMARK', object: { kind: 'Service', apiVersion: 'v1', metadata } })}\n`,
    );
  }).listen(0, '127.0.0.1');
  let watcher: ServerResponse | undefined;
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = new KubeClient({ server: url });
  const nodePorts = new NodePorts(client, { socketFile: '/nowhere', nodeAddress: '127.0.0.1' }, silent);
  try {
    nodePorts.start();
    const port = await moved.promise;
    expect(port).toBeGreaterThanOrEqual(30_000);
    expect(port).toBeLessThanOrEqual(32_767);
    // Asked by connecting: whoever listened to see whether it is free would have it taken.
    const accepts = () =>
      new Promise((resolve) => {
        const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false));
        socket.on('connect', () => socket.destroy());
      });
    await expect.poll(accepts).toBe(true);
  } finally {
    await nodePorts.stop();
    await client.close();
    other.close();
    server.closeAllConnections();
    server.close();
  }
});

/** Says `hello` at a port of the node, and nothing more. */
const HELLO = `require('node:net').createServer((socket) => socket.end('hello')).listen(7000, '${ranges.nodeAddress}', () => console.log('listens'))`;

const whyNot = await whyNoNamespaces();
it.skipIf(whyNot !== undefined)(`makes namespaces without root${whyNot ? ` (${whyNot})` : ''}`, async () => {
  const home = await mkdtemp(join(tmpdir(), 'coppice-rootless-'));
  const directory = new StateDirectory(home);
  await directory.make();
  const supervisor = new Supervisor({ directory, log: silent });
  const anew = Promise.withResolvers<void>();
  const garden = { directory, supervisor, state: { ranges } } as GardenOfSeed;
  const room = await rootlessNamespaces(garden, () => anew.resolve());
  try {
    // The seed sees itself as root, sees its own processes only, and has no way out.
    expect((await run([...room.enter, 'id', '-u'])).trim()).toBe('0');
    expect(Number((await run([...room.enter, '/bin/sh', '-c', 'ls -d /proc/[0-9]* | wc -l'])).trim())).toBeLessThan(10);
    expect(await run([...room.enterNetwork, 'cat', '/proc/net/route'])).not.toMatch(/^\S+\t00000000\t/m);

    const [program, ...words] = [...room.enter, process.execPath, '-e', HELLO];
    const inside = spawn(program, words, { stdio: ['ignore', 'pipe', 'inherit'] });
    const gone = once(inside, 'exit');
    await once(inside.stdout, 'data');
    const socket = await connectInSeed(directory.seedSocket, ranges.nodeAddress, 7000);
    expect(String((await once(socket, 'data'))[0])).toBe('hello');
    socket.destroy();
    await expect(connectInSeed(directory.seedSocket, ranges.nodeAddress, 7001)).rejects.toThrow('cannot be reached');
    expect((await stat(directory.seedSocket)).mode & 0o777).toBe(0o600);

    // Whatever was in there ends with its holder, which comes back, with the way in.
    process.kill(supervisor.status().find(({ name }) => name === HOLDER)!.pid!, 'SIGKILL');
    await gone;
    await anew.promise;
    expect(Number((await run([...room.enter, '/bin/sh', '-c', 'ls -d /proc/[0-9]* | wc -l'])).trim())).toBeLessThan(10);
    await supervisor.restart(SEED_PROXY);
    const again = spawn(program, words, { stdio: ['ignore', 'pipe', 'inherit'] });
    const goneAgain = once(again, 'exit');
    await once(again.stdout, 'data');
    const second = await connectInSeed(directory.seedSocket, ranges.nodeAddress, 7000);
    expect(String((await once(second, 'data'))[0])).toBe('hello');
    second.destroy();

    await supervisor.stop(HOLDER);
    await goneAgain;
  } finally {
    await supervisor.stop(SEED_PROXY);
    await supervisor.stop(HOLDER);
    await rm(home, { recursive: true, force: true });
  }
  await expect(access(home)).rejects.toThrow('ENOENT');
});
