import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Egress } from '../../../operator/garden/egress/egress.ts';
import { type EgressPolicy, type EgressStatus, writePolicy } from '../../../operator/garden/egress/policy.ts';
import { hostAddresses } from '../../../operator/garden/egress/routes.ts';
import { run } from '../../../operator/garden/host/command.ts';
import {
  occupiedRanges,
  POD_BRIDGE,
  SEED_LINK,
  setUpNetwork,
  tearDownNetwork,
} from '../../../operator/garden/host/network.ts';
import { isOwnAddress } from '../../../operator/garden/host/own-addresses.ts';
import { chooseRanges, egressRange, type Ranges } from '../../../operator/garden/host/ranges.ts';
import { Supervisor } from '../../../operator/garden/processes/supervisor.ts';
import { StateDirectory } from '../../../operator/garden/state/state.ts';
import { findOnPath } from '../../../operator/garden/toolchain/path-source.ts';
import { silent } from '../../../operator/kube/log.ts';
import { type Internet, makeInternet, TTL, whyNoEgress } from '../../kit/internet.ts';
import { testTools } from '../../kit/tools.ts';

const PATIENCE_MS = 60_000;
/** Prints what it gets of a URL, or the code of the error: a way that is closed answers at once, one that is not there never. */
const GET = `
const { get } = require('node:http');
const request = get(process.argv[1], { timeout: 4000, agent: false }, (response) => response.setEncoding('utf8').on('data', (text) => console.log(text)));
request.on('timeout', () => request.destroy(Object.assign(new Error(), { code: 'TIMEOUT' })));
request.on('error', (error) => console.log(error.code));
`;
/** Prints a name's address and how long it may be kept. */
const RESOLVE = `
const { Resolver } = require('node:dns');
const resolver = new Resolver({ timeout: 3000, tries: 1 });
resolver.setServers([process.argv[1]]);
resolver.resolve4(process.argv[2], { ttl: true }, (error, found) => console.log(error ? error.code : found[0].address + ' ' + found[0].ttl));
`;

const why = await whyNoEgress();
const id = randomBytes(3).toString('hex');
/** Not named as a garden's: a garden that goes beside this test looks whether it is the last. */
const names = { namespace: `egress-${id}`, link: `egress-${id}` };
const pod = `egress-pod-${id}`;
const lonely = `lonely-${id}`;

describe.skipIf(why)(`a garden's egress${why ? ` (there is none here: ${why})` : ''}`, () => {
  let internet: Internet;
  let home: string;
  let directory: StateDirectory;
  let ranges: Ranges;
  let supervisor: Supervisor;
  /** Of the daemon that was killed. */
  let killed: Supervisor | undefined;
  let egress: Egress;
  let status: EgressStatus | undefined;
  let onLoopback: Server;
  let withoutLink: string;
  let port: number;
  let hostBefore: string[];

  const entered = (namespace: string) => ['nsenter', `--net=/run/netns/${namespace}`];
  const inPod = async (script: string, ...args: string[]) =>
    (await run([...entered(pod), process.execPath, '-e', script, ...args])).trim();
  const get = (host: string, at = 80) => inPod(GET, `http://${host}:${at}/`);
  const resolve = (name: string) => inPod(RESOLVE, ranges.nodeAddress, name);
  /** All that a garden could have changed of this machine, but for what others do here meanwhile. */
  const host = async () => [
    await readFile('/proc/sys/net/ipv4/ip_forward', 'utf8'),
    await run(['iptables', '-S']).catch(() => ''),
    await run(['iptables', '-t', 'nat', '-S']).catch(() => ''),
    (await run(['ip', 'rule'])).trim(),
  ];
  const inSeed = async () => [
    await run([...entered(names.namespace), 'iptables-save']).then((text) =>
      text.split('\n').filter((line) => line.startsWith('-A')),
    ),
    (await run(['ip', '-n', names.namespace, 'route'])).split('\n').filter((line) => !line.includes(POD_BRIDGE)),
    await run(['ip', '-n', names.namespace, 'rule']),
  ];
  const open = (more: object = {}) =>
    new Egress({
      directory,
      state: { ranges },
      supervisor,
      toolchain: { ensure: testTools as never },
      log: silent,
      names,
      iptables: [...entered(names.namespace), 'iptables'],
      onStatus: (now) => {
        status = now;
      },
      ...more,
    });
  const choose = async (policy: EgressPolicy) => {
    await writePolicy(directory.egressFile, policy);
    await expect.poll(() => status, { timeout: PATIENCE_MS }).toEqual({ policy });
  };

  beforeAll(async () => {
    internet = await makeInternet();
    home = await mkdtemp(join(tmpdir(), 'coppice-egress-'));
    directory = new StateDirectory(home);
    await directory.make();
    await writeFile(join(home, 'resolv.conf'), `nameserver ${internet.address}\n`);
    process.env.COPPICE_RESOLV_CONF = join(home, 'resolv.conf');
    // As Docker's bridge without containers: its address answers, and no list of interfaces that run has it.
    const [a, b] = randomBytes(2);
    withoutLink = `198.18.${a}.${b! | 1}`;
    await run(['ip', 'link', 'add', lonely, 'type', 'veth', 'peer', 'name', `${lonely}p`]);
    await run(['ip', 'address', 'add', `${withoutLink}/32`, 'dev', lonely]);
    await run(['ip', 'link', 'set', lonely, 'up']);
    expect(networkInterfaces()).not.toHaveProperty(lonely);
    hostBefore = await host();
    ranges = chooseRanges(id, await occupiedRanges())!;
    await setUpNetwork(names, ranges);
    const [first, second] = ranges.pods.split('.');
    await run(['ip', 'netns', 'add', pod]);
    await run(['ip', '-n', names.namespace, '-batch', '-'], {
      input: [
        `link add pod type veth peer name eth0 netns ${pod}`,
        `link set pod master ${POD_BRIDGE} up`,
        `address add ${first}.${second}.0.1/17 dev ${POD_BRIDGE}`,
      ].join('\n'),
    });
    const inside = ['link set lo up', `address add ${first}.${second}.0.9/17 dev eth0`, 'link set eth0 up'];
    await run(['ip', '-n', pod, '-batch', '-'], {
      input: [...inside, `route add default via ${first}.${second}.0.1`].join('\n'),
    });
    onLoopback = createServer((_, response) => response.end('loopback')).listen(0, '127.0.0.1');
    await new Promise((done) => onLoopback.once('listening', done));
    port = (onLoopback.address() as AddressInfo).port;
    supervisor = new Supervisor({ directory, log: silent });
    egress = open();
    await egress.start();
  });
  afterAll(async () => {
    delete process.env.COPPICE_RESOLV_CONF;
    await egress?.close();
    await killed?.stop('egress');
    await supervisor?.remove('egress');
    onLoopback?.close();
    await run(['ip', 'netns', 'delete', pod]).catch(() => {});
    await tearDownNetwork(names);
    await run(['ip', 'link', 'delete', lonely]).catch(() => {});
    await internet?.close();
    if (home) await rm(home, { recursive: true, force: true });
  });

  it('reaches what this machine reaches, also by names of its resolver, with their TTL', async () => {
    expect(status).toEqual({ policy: 'all' });
    expect(await resolve('www.example.test')).toBe(`${internet.address} ${TTL}`);
    expect(await resolve('nobody.invalid')).toBe('ENOTFOUND');
    expect(await get(internet.address)).toBe(`the internet at ${internet.address}`);
    expect(await get(internet.privateAddress)).toBe(`the internet at ${internet.privateAddress}`);
  });

  it("does not reach this machine's loopback under any name", async () => {
    const { range, gateway, resolver } = egressRange(ranges);
    const inRange = (last: number) => range.replace('.0/24', `.${last}`);
    const called = [ranges.hostAddress, internet.hostAddress, gateway, resolver, inRange(5), inRange(255), '0.0.0.0'];
    const said = await Promise.all(called.map((address) => get(address, port)));
    expect(said.filter((text) => text.includes('loopback'))).toEqual([]);
    expect(await get(internet.hostAddress, port)).toBe('ECONNREFUSED');
  });

  it('does not reach cloud metadata or other gardens', async () => {
    const other = Number(ranges.pods.split('.')[1]) === 160 ? 162 : 160;
    for (const address of [
      '0.1.2.3',
      '169.254.169.254',
      '168.63.129.16',
      '100.100.100.200',
      `10.${other}.0.9`,
      `10.${other}.128.2`,
    ])
      expect(`${address} ${await get(address)}`).toBe(`${address} EHOSTUNREACH`);
  });

  it('reaches only public addresses, or none, if a person chose so', async () => {
    await choose('public');
    expect(await get(internet.address)).toContain('the internet');
    expect(await resolve('www.example.test')).toContain(internet.address);
    expect(await get(internet.privateAddress)).toBe('EHOSTUNREACH');
    expect(await get(internet.hostAddress, port)).toBe('EHOSTUNREACH');
    expect(await get('240.0.0.1')).toBe('EHOSTUNREACH');
    expect(await get(ranges.hostAddress, port)).toBe('ECONNREFUSED');

    await choose('none');
    expect(await get(internet.address)).toBe('ENETUNREACH');
    expect(await resolve('www.example.test')).toBe('ECONNREFUSED');
    expect(await run(['ip', '-n', names.namespace, 'route', 'show', 'default'])).toBe('');
    expect(supervisor.status()).toEqual([]);

    await choose('all');
    expect(await get(internet.privateAddress)).toContain('the internet');
  });

  it('recovers when its process is killed', async () => {
    const before = await inSeed();
    process.kill(supervisor.status()[0]!.pid!, 'SIGKILL');
    await expect.poll(() => get(internet.address), { timeout: PATIENCE_MS }).toContain('the internet');
    expect(await inSeed()).toEqual(before);
  });

  it('replaces that of an older garden, which sent all traffic to this machine', async () => {
    await choose('none');
    await run(['ip', '-n', names.namespace, 'route', 'add', 'default', 'via', ranges.hostAddress, 'dev', SEED_LINK]);
    await choose('all');
    expect(await run(['ip', '-n', names.namespace, 'route', 'show', 'default'])).toMatch(/^default via \S+ dev egress/);
    const addresses = await hostAddresses();
    expect(addresses).toContain(withoutLink);
    expect(isOwnAddress(withoutLink)).toBe(true);
    for (const address of addresses) {
      const route = await run(['ip', '-n', names.namespace, 'route', 'get', address]);
      expect(route).toContain(`via ${ranges.hostAddress} dev ${SEED_LINK}`);
    }
  });

  it('is off with a reported problem without slirp4netns, and on once that is installed', async () => {
    await choose('none');
    await egress.close();
    await writePolicy(directory.egressFile, 'all');
    let isInstalled = false;
    const find = async () => (isInstalled ? findOnPath('slirp4netns') : { reason: 'not installed' });
    const refused = Promise.withResolvers<never>();
    egress = open({ find, toolchain: { ensure: () => refused.promise }, againMs: 1 });
    await egress.start();
    expect(status?.problem).toContain('slirp4netns is being installed');
    refused.reject(new Error('this distribution has no apt-get'));
    const problem = 'this distribution has no apt-get';
    await expect.poll(() => status, { timeout: PATIENCE_MS }).toEqual({ policy: 'all', problem });
    expect(await get(internet.address)).toBe('ENETUNREACH');
    isInstalled = true;
    await expect.poll(() => status, { timeout: PATIENCE_MS }).toEqual({ policy: 'all' });
    expect(await get(internet.address)).toContain('the internet');

    await choose('none');
    await egress.close();
    await writePolicy(directory.egressFile, 'all');
    isInstalled = false;
    egress = open({
      find,
      toolchain: {
        ensure: async () => {
          isInstalled = true;
        },
      },
    });
    await egress.start();
    await expect.poll(() => status, { timeout: PATIENCE_MS }).toEqual({ policy: 'all' });
    expect(await get(internet.address)).toContain('the internet');
  });

  // Last: the supervisor of the daemon that plays dead would start the process again when another test ends it.
  it("is adopted after its daemon was killed: one instance, and nothing in the host's network", async () => {
    const before = await inSeed();
    const pids = supervisor.status().map(({ pid }) => pid);
    await egress.close();
    killed = supervisor;
    supervisor = new Supervisor({ directory, log: silent });
    egress = open();
    await egress.start();
    expect(await inSeed()).toEqual(before);
    expect(supervisor.status().map(({ pid }) => pid)).toEqual(pids);
    expect(await get(internet.address)).toContain('the internet');
    expect(await host()).toEqual(hostBefore);
  });
});
