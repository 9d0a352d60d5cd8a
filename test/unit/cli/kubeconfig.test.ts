import { chmod, lstat, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  addContext,
  bundleOf,
  namespaceOf,
  parseKubeconfig,
  removeContext,
} from '../../../operator/cli/kubeconfig/config.ts';
import { changeKubeconfig, fileToChange } from '../../../operator/cli/kubeconfig/file.ts';
import { spliceKubeconfig } from '../../../operator/cli/kubeconfig/splice.ts';
import {
  combineKubeconfigs,
  type KubeconfigDocument,
  personalKubeconfigs,
} from '../../../operator/kube/kubeconfig-files.ts';

const OURS = 'coppice/default/demo';
const CLUSTER = `apiVersion: v1
kind: Config
clusters: [{name: demo, cluster: {server: "https://10.0.0.1:6443", certificate-authority-data: Y2E=}}]
users: [{name: admin, user: {client-certificate-data: Y2VydA==, client-key-data: a2V5}}]
contexts: [{name: demo, context: {cluster: demo, user: admin}}]
current-context: demo
`;
const PERSONAL = `# mine, do not touch
apiVersion: v1
clusters:
- cluster:
    server: https://work.example:6443
    extensions: [{name: x, extension: {a: 1}}]
  name: work
# about contexts
contexts:
- context: {cluster: work, user: me, namespace: shop}
  name: work
current-context: work
kind: Config
preferences: {colors: true}
users:
- name: me
  user:
    exec: # a plugin
      apiVersion: client.authentication.k8s.io/v1
      command: get-token
      interactiveMode: Never
`;
const bundle = bundleOf(parseKubeconfig(CLUSTER, 'x'), OURS);
const personal = () => parseKubeconfig(PERSONAL, 'personal');

describe('merging', () => {
  it('adds one context and changes nothing else, not even the current context', () => {
    const merged = addContext(personal(), bundle);
    expect(merged['current-context']).toBe('work');
    expect(merged.preferences).toEqual({ colors: true });
    expect(merged.clusters?.map((entry) => entry.name)).toEqual(['work', OURS]);
    expect(merged.clusters?.[0]).toEqual(personal().clusters?.[0]);
    expect(merged.contexts?.[1]).toEqual({ name: OURS, context: { cluster: OURS, user: OURS } });
    expect(addContext(merged, bundle)).toEqual(merged);
  });

  it('removes what it added', () => {
    expect(removeContext(addContext(personal(), bundle), OURS)).toEqual(personal());
    expect(removeContext(personal(), OURS)).toBeUndefined();
  });

  it('keeps a cluster that another context uses', () => {
    const merged = addContext(personal(), bundle);
    merged.contexts!.push({ name: 'mine', context: { cluster: OURS, user: 'me' } });
    const removed = removeContext(merged, OURS)!;
    expect(removed.clusters?.map((entry) => entry.name)).toContain(OURS);
    expect(removed.users?.map((entry) => entry.name)).toEqual(['me']);
  });

  it('makes its context the current one of an empty file', () => {
    const merged = addContext(parseKubeconfig('', 'empty'), bundle);
    expect(merged).toMatchObject({ apiVersion: 'v1', kind: 'Config', 'current-context': OURS });
    expect(removeContext(merged, OURS)).toMatchObject({ clusters: [], users: [], contexts: [], 'current-context': '' });
  });

  it('keeps comments and layout of a common file', () => {
    const before = personal();
    const merged = addContext(before, bundle);
    const text = spliceKubeconfig(PERSONAL, before, merged);
    expect(load(text)).toEqual(merged);
    for (const line of PERSONAL.trimEnd().split('\n')) expect(text.split('\n')).toContain(line);
    const back = spliceKubeconfig(text, merged, removeContext(merged, OURS)!);
    expect(back).toBe(PERSONAL);
  });

  it.each([
    ['flow style', CLUSTER],
    ['JSON', JSON.stringify(load(CLUSTER))],
    ['null lists', 'apiVersion: v1\nkind: Config\nclusters: null\nusers: []\ncontexts:\n'],
    ['indented lists', 'apiVersion: v1\nclusters:\n  - name: a\n    cluster: {server: "https://a"}\nkind: Config'],
    ['an empty file', ''],
  ])('writes %s so that it reads back', (_, text) => {
    const before = parseKubeconfig(text, 'x');
    const merged = addContext(before, bundle);
    const written = spliceKubeconfig(text, before, merged);
    expect(load(written)).toEqual(merged);
    const after: KubeconfigDocument = removeContext(merged, OURS)!;
    expect(load(spliceKubeconfig(written, merged, after))).toEqual(after);
  });

  it.each(['- a', 'text', 'clusters: {a: 1}', 'a: ['])('refuses %j as a kubeconfig', (text) => {
    expect(() => parseKubeconfig(text, 'the file')).toThrow(/the file/);
  });
});

describe('several files', () => {
  it('are merged, the first has precedence, and relative paths stay valid', () => {
    const first = parseKubeconfig('clusters: [{name: a, cluster: {certificate-authority: ca.crt}}]', '1');
    const second = parseKubeconfig(
      'clusters: [{name: a, cluster: {server: s}}]\ncurrent-context: b\ncontexts: [{name: b, context: {namespace: n}}]',
      '2',
    );
    const combined = combineKubeconfigs([
      { document: first, file: '/one/config' },
      { document: second, file: '/two/config' },
    ]);
    expect(combined.clusters).toEqual([{ name: 'a', cluster: { 'certificate-authority': '/one/ca.crt' } }]);
    expect(namespaceOf(combined)).toBe('n');
  });

  it('are named by KUBECONFIG, else in the home folder', () => {
    expect(personalKubeconfigs({ KUBECONFIG: '/a::/b:/a' })).toEqual(['/a', '/b']);
    expect(personalKubeconfigs({ HOME: '/home/me' })).toEqual(['/home/me/.kube/config']);
  });
});

describe('the file', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'coppice-kubeconfig-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));
  const add = (document: KubeconfigDocument) => addContext(document, bundle);

  it('is created with mode 0600, with its folder', async () => {
    const file = join(folder, '.kube', 'config');
    expect(await changeKubeconfig(file, add)).toBe(true);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await changeKubeconfig(file, add)).toBe(false);
    expect(await readdir(join(folder, '.kube'))).toEqual(['config']);
  });

  it('keeps its mode, and stays a symbolic link', async () => {
    const real = join(folder, 'real');
    const link = join(folder, 'link');
    await writeFile(real, PERSONAL);
    await chmod(real, 0o640);
    await symlink(real, link);
    await changeKubeconfig(link, add);
    expect((await lstat(link)).isSymbolicLink()).toBe(true);
    expect((await stat(real)).mode & 0o777).toBe(0o640);
    expect(await readFile(real, 'utf8')).toContain('# mine, do not touch');
  });

  it('loses no change of parallel writers', async () => {
    const file = join(folder, 'config');
    const names = Array.from({ length: 6 }, (_, index) => `c${index}`);
    await Promise.all(
      names.map((name) =>
        changeKubeconfig(file, (document) => addContext(document, bundleOf(parseKubeconfig(CLUSTER, ''), name))),
      ),
    );
    const written = parseKubeconfig(await readFile(file, 'utf8'), file);
    expect(written.contexts?.map((entry) => entry.name).sort()).toEqual([...names].sort());
  });

  it('is changed in spite of the lock of a process that has ended', async () => {
    const file = join(folder, 'config');
    await writeFile(`${file}.lock`, '4194399\n');
    expect(await changeKubeconfig(file, add)).toBe(true);
  });

  it('stays unchanged when it cannot be parsed', async () => {
    const file = join(folder, 'config');
    await writeFile(file, 'a: [');
    await expect(changeKubeconfig(file, add)).rejects.toThrow(/not valid YAML/);
    expect(await readFile(file, 'utf8')).toBe('a: [');
    expect(await readdir(folder)).toEqual(['config']);
  });

  it('is the one with the context, else the first that exists, else the last', async () => {
    const [a, b, c] = ['a', 'b', 'c'].map((name) => join(folder, name)) as [string, string, string];
    expect(await fileToChange([a, b, c], OURS)).toBe(c);
    await writeFile(b, PERSONAL);
    expect(await fileToChange([a, b, c], OURS)).toBe(b);
    await changeKubeconfig(c, add);
    expect(await fileToChange([a, b, c], OURS)).toBe(c);
  });
});
