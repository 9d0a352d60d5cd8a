import { execFileSync } from 'node:child_process';
import { constants } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { API_VERSION } from '../../../operator/api/group.ts';
import { installManifests } from '../../../operator/api/install.ts';
import { productionModuleFiles } from '../../../operator/garden/images/operator-image/build-operator-image.ts';
import { linkedLibraries } from '../../../operator/garden/images/operator-image/contents.ts';
import { writeArchive } from '../../../operator/release/archive.ts';
import { cliArchive, type PackageManifest } from '../../../operator/release/cli-archive.ts';
import { runCommand } from '../../kit/run.ts';
import { type SharedApiserver, sharedApiserver } from '../../kit/shared-apiserver.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const isRoot = process.getuid?.() === 0;

let api: SharedApiserver;
/** A root file system with the archive, a shell, and no other program until a test adds one. */
let machine: string;
let command: string;

/** Copies a program with the libraries that it is linked to. */
async function addProgram(path: string, as: string): Promise<void> {
  const needed = linkedLibraries(execFileSync('ldd', [path], { encoding: 'utf8' }));
  for (const [from, to] of [[path, as], ...needed.map((library) => [library, library])] as [string, string][]) {
    await mkdir(dirname(join(machine, to)), { recursive: true });
    await copyFile(await realpath(from), join(machine, to), constants.COPYFILE_FICLONE);
  }
}

const coppice = (...args: string[]) =>
  runCommand('chroot', [machine, '/bin/sh', command, ...args], { env: { PATH: process.env.PATH, HOME: '/root' } });

beforeAll(async () => {
  if (!isRoot) return;
  api = await sharedApiserver();
  machine = await mkdtemp(join(tmpdir(), 'coppice-machine-'));
  const manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as PackageManifest;
  const tracked = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' }).split('\0').filter(Boolean);
  const modules = await productionModuleFiles();
  const archive = join(machine, 'cli.tar.gz');
  await writeArchive(archive, cliArchive(ROOT, manifest, { tracked, modules, node: process.versions.node }));
  await mkdir(join(machine, 'opt'));
  execFileSync('tar', ['-xzf', archive, '-C', join(machine, 'opt')]);
  command = `/opt/coppice-${manifest.version}/bin/coppice`;
  await mkdir(join(machine, 'root'));
  await writeFile(join(machine, 'root/kubeconfig'), api.kubeconfig);
  await mkdir(join(machine, 'dev'));
  execFileSync('mknod', ['-m', '666', join(machine, 'dev/null'), 'c', '1', '3']);
  await addProgram('/bin/sh', '/bin/sh');
});
afterAll(async () => {
  await api?.leave();
  if (machine) await rm(machine, { recursive: true, force: true });
});

// chroot is for root.
it.skipIf(!isRoot)(
  'the CLI archive names the Node that is missing, and needs nothing else to work with a garden',
  async () => {
    const without = await coppice('version');
    expect(without).toMatchObject({ code: 1, stderr: 'coppice: needs Node 24 or later on PATH, and finds none\n' });

    await addProgram(process.execPath, '/usr/local/bin/node');
    for (const object of installManifests()) await api.client.apply(object);
    const metadata = { name: 'demo', namespace: api.namespace };
    const manifest = {
      apiVersion: API_VERSION,
      kind: 'WorkerCluster',
      metadata,
      spec: { cloudProvider: 'aws', dataPlaneNodes: 1 },
    };
    await writeFile(join(machine, 'root/demo.yaml'), JSON.stringify(manifest));
    const garden = ['--kubeconfig', '/root/kubeconfig', '-n', api.namespace];
    const applied = await coppice('apply', '-f', '/root/demo.yaml', ...garden);
    expect(applied).toMatchObject({ code: 0, stderr: '', stdout: 'WorkerCluster demo created.\n' });
    const listed = await coppice('get', ...garden);
    expect(listed).toMatchObject({ code: 0, stderr: '' });
    expect(listed.stdout).toContain('demo');

    // Rehearsals load the operator's deciders and the simulated cloud.
    const examples = `${dirname(dirname(command))}/examples/rehearsal`;
    const rehearsed = await coppice(
      'rehearse',
      ...['-f', `${examples}/clusters.yaml`, '--trace', `${examples}/demand.csv`],
    );
    expect(rehearsed).toMatchObject({ code: 0, stderr: 'SIMULATED: nothing was created and nothing is billed.\n' });
  },
);
