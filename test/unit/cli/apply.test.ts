import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { main } from '../../../operator/cli/main.ts';
import { createTerminal } from '../../../operator/cli/terminal.ts';
import { StateDirectory } from '../../../operator/garden/state/state.ts';
import { SmallApiServer } from '../../kit/small-api-server.ts';

let server: SmallApiServer;
let home: string;
beforeAll(async () => {
  server = await SmallApiServer.start('garden');
  home = await mkdtemp(join(tmpdir(), 'coppice-apply-'));
  const directory = new StateDirectory(home);
  await directory.make();
  await writeFile(directory.kubeconfigFile('admin'), server.kubeconfig);
});
afterAll(async () => {
  await server.stop();
  await rm(home, { recursive: true, force: true });
});

async function apply(objects: object[], ...more: string[]) {
  const file = join(home, 'objects.json');
  await writeFile(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }));
  let [out, err] = ['', ''];
  const env = { COPPICE_HOME: home, HOME: home };
  const terminal = createTerminal({
    out: { write: (text) => (out += text) },
    err: { write: (text) => (err += text) },
    env,
  });
  const code = await main(['apply', '-f', file, ...more], terminal, env, new AbortController().signal);
  return { code, out, err };
}

const object = (apiVersion: string, kind: string, name: string) => ({ apiVersion, kind, metadata: { name } });
const WORK = ['one', 'two', 'three', 'four'].map((name) => object('apps/v1', 'Deployment', name));

it('apply notes that workloads are now in the garden, and how to put them into a cluster', async () => {
  expect(await apply(WORK.slice(0, 1))).toEqual({
    code: 0,
    out: 'Deployment one created.\n',
    err: 'Deployment one is in the garden itself, and in none of its clusters. For a cluster, run "coppice kubeconfig NAME --merge" once, then "kubectl --context coppice/NAMESPACE/NAME apply -f FILE".\n',
  });
  expect((await apply(WORK)).err).toContain(
    'Deployment one, Deployment two, Deployment three and 1 more are in the garden',
  );
});

it('apply prints no note for objects of a garden, or when the person named the API server', async () => {
  const own = [object('v1', 'Secret', 'login'), object('v1', 'Namespace', 'shop')];
  expect(await apply(own)).toMatchObject({ code: 0, err: '' });
  const file = new StateDirectory(home).kubeconfigFile('admin');
  expect(await apply(WORK, '--kubeconfig', file)).toMatchObject({ code: 0, err: '' });
});
