import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import { CommandError } from '../../../operator/garden/command.ts';
import { saveFromEngine } from '../../../operator/garden/images/load/engines.ts';
import { keepImages } from '../../../operator/garden/images/load/keep.ts';
import { type Mirror, startMirror } from '../../../operator/garden/images/mirror.ts';
import { fullReference } from '../../../operator/garden/images/reference.ts';

let home: string;
let loaded: string;
let mirror: Mirror;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'coppice-load-'));
  loaded = join(home, 'loaded');
  mirror = await startMirror({ dirs: [loaded], host: '127.0.0.1', port: 0 });
});
afterEach(async () => {
  await mirror.close();
  await rm(home, { recursive: true, force: true });
});

const digestOf = (data: string | Buffer) => `sha256:${createHash('sha256').update(data).digest('hex')}`;
const OURS = process.arch === 'x64' ? 'amd64' : process.arch;

/** A tar of these files, as GNU tar makes it; `link:` begins what is a link. */
async function archive(files: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(join(home, 'files-'));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    if (text.startsWith('link:')) await symlink(text.slice('link:'.length), join(folder, name));
    else await writeFile(join(folder, name), text);
  }
  const file = `${folder}.tar`;
  await promisify(execFile)('tar', ['-C', folder, '-cf', file, ...Object.keys(files)]);
  return file;
}

/** What `docker save` wrote before version 25, with the names of folders that it has. */
const ofDocker = (tags: string[] | null, layer = 'layer'): Promise<string> => {
  const [one, two] = ['1'.repeat(64), '2'.repeat(64)];
  return archive({
    'config.json': JSON.stringify({ architecture: OURS, of: layer }),
    [`${one}/layer.tar`]: layer,
    [`${two}/layer.tar`]: `link:../${one}/layer.tar`,
    'manifest.json': JSON.stringify([
      { Config: 'config.json', RepoTags: tags, Layers: [`${one}/layer.tar`, `${two}/layer.tar`] },
    ]),
  });
};

/** What Docker writes since, containerd and OCI tools do: an index of an index of platforms, of which one is there. */
function ofLayout({ name, layer = 'layer', said = layer }: { name?: string; layer?: string; said?: string }) {
  const blob = (text: string) => [`blobs/sha256/${digestOf(text).slice(7)}`, text] as const;
  const described = (text: string, more: object = {}) => ({ digest: digestOf(text), size: text.length, ...more });
  const config = JSON.stringify({ architecture: OURS });
  const manifest = JSON.stringify({ schemaVersion: 2, config: described(config), layers: [described(said)] });
  const index = JSON.stringify({
    manifests: [
      described('not here', { platform: { os: 'linux', architecture: 's390x' } }),
      described(manifest, { platform: { os: 'linux', architecture: OURS } }),
    ],
  });
  const annotations = name === undefined ? {} : { 'io.containerd.image.name': name };
  return archive({
    'oci-layout': '{"imageLayoutVersion":"1.0.0"}',
    'index.json': JSON.stringify({ manifests: [described(index, { annotations })] }),
    ...Object.fromEntries([blob(config), blob(manifest), blob(index)]),
    [`blobs/sha256/${digestOf(said).slice(7)}`]: layer,
  });
}

/** The layers that a node gets when it asks the mirror for the image, checked. */
async function pulled(registry: string, repository: string, tag: string): Promise<string[] | number> {
  const ask = (path: string) => fetch(`${mirror.url}/v2/${repository}/${path}?ns=${registry}`);
  const response = await ask(`manifests/${tag}`);
  if (!response.ok) return response.status;
  const text = await response.text();
  expect(digestOf(text)).toBe(response.headers.get('docker-content-digest'));
  const { config, layers } = JSON.parse(text) as { config: { digest: string }; layers: { digest: string }[] };
  const [, ...content] = await Promise.all(
    [config, ...layers].map(async ({ digest }) => {
      const data = await (await ask(`blobs/${digest}`)).text();
      expect(digestOf(data)).toBe(digest);
      return data;
    }),
  );
  return content;
}

describe('an archive', () => {
  it('of Docker is had by nodes under all its names', async () => {
    await keepImages(await ofDocker(['app:dev', 'ghcr.io/team/app:v1']), loaded);
    expect(await pulled('docker.io', 'library/app', 'dev')).toEqual(['layer', 'layer']);
    expect(await pulled('ghcr.io', 'team/app', 'v1')).toEqual(['layer', 'layer']);
    expect(await pulled('ghcr.io', 'team/app', 'v2')).toBe(404);
  });

  it('in an OCI layout is had as the image for this platform', async () => {
    const [image] = await keepImages(await ofLayout({ name: 'docker.io/library/app:dev' }), loaded);
    expect(image?.ref).toBe('docker.io/library/app:dev');
    expect(await pulled('docker.io', 'library/app', 'dev')).toEqual(['layer']);
  });

  it('takes the place of an earlier one', async () => {
    await keepImages(await ofDocker(['app:dev'], 'old'), loaded);
    expect(await pulled('docker.io', 'library/app', 'dev')).toEqual(['old', 'old']);
    await keepImages(await ofLayout({ name: 'docker.io/library/app:dev', layer: 'new' }), loaded);
    expect(await pulled('docker.io', 'library/app', 'dev')).toEqual(['new']);
    expect(await readdir(loaded)).toHaveLength(1);
  });

  it('without a name needs one, and takes the one that is given', async () => {
    for (const file of [await ofDocker(null), await ofLayout({})]) {
      await expect(keepImages(file, loaded)).rejects.toThrow('give the name with --as');
      await keepImages(file, loaded, 'localhost/app:v1');
      expect(await pulled('localhost', 'app', 'v1')).toContain('layer');
    }
  });

  it.each([
    [
      'holds something else than it says',
      () => ofLayout({ name: 'app:dev', layer: 'a lie', said: 'truth' }),
      /does not match that digest/,
    ],
    ['is of nothing', () => archive({ 'hello.txt': 'hello' }), /contains no images/],
    [
      'is no archive',
      async () => {
        const file = join(home, 'text.tar');
        await writeFile(file, 'hello'.repeat(1000));
        return file;
      },
      /not a tar archive/,
    ],
    [
      'is cut off',
      async () => {
        const file = await ofLayout({ name: 'app:dev', layer: 'x'.repeat(100_000) });
        await truncate(file, 60_000);
        return file;
      },
      /the archive is incomplete/,
    ],
  ])('that %s is refused, and nothing of it stays', async (_, make, why) => {
    await expect(keepImages(await make(), loaded)).rejects.toThrow(why);
    expect(await readdir(loaded).catch(() => [])).toEqual([]);
  });
});

test.each([
  ['nginx', 'docker.io/library/nginx:latest'],
  ['nginx:1.27', 'docker.io/library/nginx:1.27'],
  ['team/app', 'docker.io/team/app:latest'],
  ['index.docker.io/team/app:v1', 'docker.io/team/app:v1'],
  ['localhost/app:dev', 'localhost/app:dev'],
  ['localhost:5001/team/app', 'localhost:5001/team/app:latest'],
  ['ghcr.io/team/app:v1', 'ghcr.io/team/app:v1'],
])('%s is %s in full', (name, full) => expect(fullReference(name)).toBe(full));

test.each(['', 'App', 'a b', 'ghcr.io/', 'app:', `app@sha256:${'0'.repeat(64)}`])('"%s" is no name', (name) =>
  expect(() => fullReference(name)).toThrow(),
);

describe('an image of this machine', () => {
  const NOT_INSTALLED = Symbol('not installed');
  /** Who answers what to commands that begin with these words. */
  const machine = (answers: Record<string, string | Error | typeof NOT_INSTALLED>) => {
    const asked: string[] = [];
    const run = async (command: string[]) => {
      const text = command.join(' ');
      asked.push(text);
      const [, answer] = Object.entries(answers).find(([words]) => text.startsWith(words)) ?? [];
      if (answer === NOT_INSTALLED || answer === undefined) {
        throw Object.assign(new CommandError(command, '', 'ENOENT'), { isNotInstalled: true });
      }
      if (answer instanceof Error) throw new CommandError(command, answer.message, 'exit code 1');
      return answer;
    };
    return { asked, run };
  };

  it('comes from Docker where that has it', async () => {
    const { asked, run } = machine({ 'docker image': 'ok' });
    expect(await saveFromEngine('app:dev', 'docker.io/library/app:dev', '/tmp/a.tar', run)).toBe('docker');
    expect(asked).toContain('docker image save --output /tmp/a.tar app:dev');
  });

  it('comes from containerd, by its full name, where the others have it not', async () => {
    const { asked, run } = machine({
      'docker image': new Error('Cannot connect to the Docker daemon'),
      'ctr namespaces': 'default\nk8s.io\n',
      'ctr --namespace default images list': '',
      'ctr --namespace k8s.io images': 'docker.io/library/app:dev',
    });
    expect(await saveFromEngine('app:dev', 'docker.io/library/app:dev', '/tmp/a.tar', run)).toBe('containerd');
    expect(asked.at(-1)).toBe('ctr --namespace k8s.io images export /tmp/a.tar docker.io/library/app:dev');
  });

  it('that nobody has is said to be with none of them, and why', async () => {
    const { run } = machine({ 'docker image': new Error('No such image: app:dev') });
    await expect(saveFromEngine('app:dev', 'docker.io/library/app:dev', '/tmp/a.tar', run)).rejects.toThrow(
      'no container engine on this machine has app:dev (docker: No such image: app:dev; podman: is not installed; containerd: is not installed)',
    );
    expect(await readFile('/tmp/a.tar').catch(() => undefined)).toBeUndefined();
  });
});
