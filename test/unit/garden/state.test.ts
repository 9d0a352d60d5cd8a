import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { crds } from '../../../operator/api/crd.ts';
import { keptPorts } from '../../../operator/garden/daemon/prepare-state.ts';
import { Garden } from '../../../operator/garden/garden.ts';
import { readJson, readText, writeAtomic, writeIfChanged } from '../../../operator/garden/host/files.ts';
import { choosePorts } from '../../../operator/garden/host/ports.ts';
import { ownIdentity } from '../../../operator/garden/host/process-identity.ts';
import { chooseRanges } from '../../../operator/garden/host/ranges.ts';
import { refuseLoss, settableFields } from '../../../operator/garden/state/known-fields.ts';
import { FORMAT, type GardenState, StateDirectory, WRITERS_OF_FORMAT } from '../../../operator/garden/state/state.ts';
import { TOOLS } from '../../../operator/garden/toolchain/tools.ts';

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'coppice-state-'));
});
afterEach(() => rm(home, { recursive: true, force: true }));

const mode = async (file: string) => (await stat(file)).mode & 0o777;

it("the garden's state is stored readable for its user only", async () => {
  const directory = new StateDirectory(home);
  await directory.make();
  expect(await directory.read()).toBeUndefined();
  const state: GardenState = {
    id: directory.id,
    createdAt: '2026-01-01T00:00:00Z',
    ports: { apiserver: 1, etcd: 2, etcdPeer: 3 },
    ranges: chooseRanges(directory.id, [])!,
    seed: 'local',
  };
  await directory.write(state);
  expect(await new StateDirectory(home).read()).toEqual(state);
  expect(await mode(directory.root)).toBe(0o700);
  expect(await mode(directory.stateFile)).toBe(0o600);
});

it('gardens are distinguished by their folder', () => {
  expect(new StateDirectory('/a').id).not.toBe(new StateDirectory('/b').id);
  expect(new StateDirectory('/a').id).toMatch(/^[0-9a-f]{6}$/);
});

it('a garden of an older format is opened, and gets the present one', async () => {
  const directory = new StateDirectory(home);
  await directory.make();
  const old = { version: 1, id: directory.id, ports: { apiserver: 1, etcd: 2, etcdPeer: 3 }, seed: 'local' };
  await writeFile(directory.stateFile, JSON.stringify(old));
  const state = (await directory.read())!;
  expect(state).toEqual({ ...old, version: undefined });
  await directory.write(state);
  expect(await readJson(directory.stateFile)).toEqual({ ...old, version: FORMAT });
});

it('a garden of a newer format is refused in one line, and left unchanged', async () => {
  const directory = new StateDirectory(home);
  await directory.make();
  const newer = `{"version":${FORMAT + 1},"surprise":true}`;
  await writeFile(directory.stateFile, newer);
  const refusal = /was last opened by a newer Coppice .*: open it with that version, or set .*COPPICE_HOME/;
  await expect(Garden.open({ home }).up()).rejects.toThrow(refusal);
  await expect(Garden.open({ home }).status()).rejects.toThrow(refusal);
  expect(await readText(directory.stateFile)).toBe(newer);
  await writeFile(directory.stateFile, '{"vers');
  await expect(directory.read()).rejects.toThrow(/is damaged/);
});

it('a garden whose clusters may lose fields is refused', () => {
  const known = settableFields(crds());
  expect(known).toContain('WorkerCluster.spec.dataPlaneNodes');
  expect(known).toContain('WorkerCluster.spec.pools[].name');
  expect(() => refuseLoss(known.slice(5), known, '/garden')).not.toThrow();
  expect(() => refuseLoss([...known, 'WorkerCluster.spec.wings', 'Hub.spec.x'], known, '/garden')).toThrow(
    /^the garden in \/garden was last opened by a newer Coppice, whose clusters may have WorkerCluster.spec.wings and 1 more: open/,
  );
});

it('the format changes with the minor versions of etcd or Kubernetes that write to disk', () => {
  const minor = (version: string) => version.split('.').slice(0, 2).join('.');
  const { etcd, 'kube-apiserver': apiserver } = TOOLS;
  // Raise FORMAT with them: what they have written an older one does not open.
  expect({ etcd: minor(etcd.version), kubernetes: minor(apiserver.version) }).toEqual(WRITERS_OF_FORMAT);
});

it('writeAtomic writes whole files and leaves no draft', async () => {
  const file = join(home, 'a', 'b.json');
  await Promise.all([1, 2, 3].map((n) => writeAtomic(file, JSON.stringify({ n }))));
  expect(await readdir(join(home, 'a'))).toEqual(['b.json']);
  expect(await readJson(file)).toHaveProperty('n');
  expect(await writeIfChanged(file, 'x')).toBe(true);
  expect(await writeIfChanged(file, 'x')).toBe(false);
  expect(await readJson(file)).toBeUndefined();
  expect(await readText(join(file, 'below-a-file'))).toBeUndefined();
});

it("choosePorts returns three different free ports, starting at the id's", async () => {
  const taken = new Set([21_000 + 0xabc, 21_000 + 0xabc + 2]);
  const ports = await choosePorts('000abc', async (port) => !taken.has(port));
  expect(ports).toEqual({ apiserver: 21_000 + 0xabc + 1, etcd: 21_000 + 0xabc + 3, etcdPeer: 21_000 + 0xabc + 4 });
  await expect(choosePorts('000abc', async () => false)).rejects.toThrow(/no three free ports/);
});

it('keptPorts replaces a port taken by another program, whatever was recorded before a power cut', async () => {
  const directory = new StateDirectory(home);
  const before = { id: '000abc', ports: { apiserver: 30_001, etcd: 30_002, etcdPeer: 30_003 } };
  const isFree = async (port: number) => port !== before.ports.etcd;
  expect(await keptPorts(directory, before, async () => true)).toBe(before.ports);
  await writeAtomic(directory.pidFile('etcd'), JSON.stringify({ pid: process.pid, started: 'another boot/1' }));
  expect(await keptPorts(directory, before, isFree)).not.toEqual(before.ports);
  // What holds the port is the garden's own etcd, which an earlier daemon has left.
  await writeAtomic(directory.pidFile('etcd'), JSON.stringify(await ownIdentity()));
  expect(await keptPorts(directory, before, isFree)).toBe(before.ports);
});
