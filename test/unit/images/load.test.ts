import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import { CommandError, run } from '../../../operator/garden/host/command.ts';
import { KEPT_FREE_BYTES, NoRoomError } from '../../../operator/garden/host/disk-room.ts';
import { saveFromEngine } from '../../../operator/garden/images/load/engines.ts';
import { keepImages } from '../../../operator/garden/images/load/keep.ts';
import { unpackArchive } from '../../../operator/garden/images/load/unpack.ts';
import { startMirror } from '../../../operator/garden/images/mirror.ts';
import { fullReference } from '../../../operator/garden/images/reference.ts';

type Mirror = Awaited<ReturnType<typeof startMirror>>;

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
async function archive(files: Record<string, string | Buffer>): Promise<string> {
  const folder = await mkdtemp(join(home, 'files-'));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    if (typeof text === 'string' && text.startsWith('link:'))
      await symlink(text.slice('link:'.length), join(folder, name));
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

interface Described {
  mediaType?: string;
  digest: string;
  size: number;
  platform?: object;
  annotations?: Record<string, string>;
}

/** An OCI layout that is put together blob by blob. */
class Layout {
  readonly #files: Record<string, string | Buffer> = { 'oci-layout': '{"imageLayoutVersion":"1.0.0"}' };

  /** Puts content there, and describes it as an index or a manifest does. */
  blob(content: string | Buffer | object, more: Partial<Described> = {}): Described {
    const data = typeof content === 'string' || Buffer.isBuffer(content) ? content : JSON.stringify(content);
    this.#files[`blobs/sha256/${digestOf(data).slice(7)}`] = data;
    return { digest: digestOf(data), size: data.length, ...more };
  }

  image(layers: readonly [type: string, data: string | Buffer][], more: Partial<Described> = {}): Described {
    return this.blob(
      {
        schemaVersion: 2,
        config: this.blob({ architecture: OURS, of: layers.map(([, data]) => digestOf(data)) }),
        layers: layers.map(([mediaType, data]) => this.blob(data, { mediaType })),
      },
      more,
    );
  }

  archive(manifests: readonly Described[], more: Record<string, string> = {}): Promise<string> {
    return archive({ ...this.#files, ...more, 'index.json': JSON.stringify({ schemaVersion: 2, manifests }) });
  }
}

const LAYER = 'application/vnd.oci.image.layer.v1.tar';
const HERE = { os: 'linux', architecture: OURS };
const ELSEWHERE = { os: 'linux', architecture: 's390x' };
/** How containerd names an image in an index: in full, and by its tag alone. */
const named = (name: string) => ({
  'io.containerd.image.name': name,
  'org.opencontainers.image.ref.name': name.split(':').at(-1)!,
});

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

describe('a loaded archive', () => {
  it('of Docker provides its image under all names', async () => {
    await keepImages(await ofDocker(['app:dev', 'ghcr.io/team/app:v1']), loaded);
    expect(await pulled('docker.io', 'library/app', 'dev')).toEqual(['layer', 'layer']);
    expect(await pulled('ghcr.io', 'team/app', 'v1')).toEqual(['layer', 'layer']);
    expect(await pulled('ghcr.io', 'team/app', 'v2')).toBe(404);
  });

  it('in an OCI layout provides the image for this platform', async () => {
    const [image] = await keepImages(await ofLayout({ name: 'docker.io/library/app:dev' }), loaded);
    expect(image?.ref).toBe('docker.io/library/app:dev');
    expect(await pulled('docker.io', 'library/app', 'dev')).toEqual(['layer']);
  });

  it('of Podman provides its image, with layers by digest and linked folders', async () => {
    const layers = ['base', 'top'].map((text) => ({ text, file: `${digestOf(text).slice(7)}.tar` }));
    const [config, old] = [JSON.stringify({ architecture: OURS }), ['a'.repeat(64), 'b'.repeat(64)] as const];
    const configFile = `${digestOf(config).slice(7)}.json`;
    const file = await archive({
      ...Object.fromEntries(layers.map(({ file, text }) => [file, text])),
      ...Object.fromEntries(layers.map(({ file }, i) => [`${old[i]}/layer.tar`, `link:../${file}`])),
      [`${old[0]}/VERSION`]: '1.0',
      [configFile]: config,
      'manifest.json': JSON.stringify([
        { Config: configFile, RepoTags: ['localhost/app:dev'], Layers: layers.map(({ file }) => file) },
      ]),
    });
    await keepImages(file, loaded);
    expect(await pulled('localhost', 'app', 'dev')).toEqual(['base', 'top']);
  });

  it('of containerd or nerdctl provides its packed layers, without attestations and other platforms', async () => {
    const layout = new Layout();
    const packed = [
      [`${LAYER}+gzip`, gzipSync('one')],
      [`${LAYER}+zstd`, zstdCompressSync('two')],
      [LAYER, 'three'],
    ] as const;
    const attestation = { 'vnd.docker.reference.type': 'attestation-manifest' };
    const unknown = { os: 'unknown', architecture: 'unknown' };
    const index = layout.blob({
      schemaVersion: 2,
      manifests: [
        layout.image([['application/vnd.in-toto+json', 'how it was built']], { annotations: attestation }),
        layout.image([['application/vnd.in-toto+json', 'who built it']], {
          platform: unknown,
          annotations: attestation,
        }),
        { digest: digestOf('not here'), size: 1, platform: ELSEWHERE },
        layout.image(
          packed.map(([type, data]) => [type, data]),
          { platform: HERE },
        ),
      ],
    });
    const annotations = named('ghcr.io/team/app:v1');
    // containerd writes both: what its index says counts.
    const more = {
      'manifest.json': JSON.stringify([{ Config: 'none', RepoTags: ['ghcr.io/team/app:v1'], Layers: [] }]),
    };
    const [image] = await keepImages(await layout.archive([{ ...index, annotations }], more), loaded);
    expect(image?.ref).toBe('ghcr.io/team/app:v1');
    const ask = (path: string) => fetch(`${mirror.url}/v2/team/app/${path}?ns=ghcr.io`);
    const { layers } = (await (await ask('manifests/v1')).json()) as { layers: Described[] };
    expect(layers.map(({ mediaType }) => mediaType)).toEqual(packed.map(([type]) => type));
    for (const [i, { digest }] of layers.entries())
      expect(Buffer.from(await (await ask(`blobs/${digest}`)).arrayBuffer())).toEqual(Buffer.from(packed[i]![1]));
  });

  it('with a list of platforms provides the image for this one', async () => {
    const layout = new Layout();
    const far = layout.image([[LAYER, 'far']], { platform: ELSEWHERE });
    const here = layout.image([[LAYER, 'here']], { platform: HERE });
    const file = await layout.archive([far, here]);
    expect(await keepImages(file, loaded, 'localhost/app:v1')).toHaveLength(1);
    expect(await pulled('localhost', 'app', 'v1')).toEqual(['here']);
    await expect(keepImages(await layout.archive([far]), loaded, 'localhost/far:v1')).rejects.toThrow(
      new RegExp(`it has no sha256:.* for linux/${OURS}`),
    );
  });

  it('with one image of two names uses the given name', async () => {
    await keepImages(await ofDocker(['app:dev', 'app:v1']), loaded, 'localhost/app:v2');
    expect(await pulled('localhost', 'app', 'v2')).toEqual(['layer', 'layer']);
  });

  it('of all tags provides the image of the given name', async () => {
    const layout = new Layout();
    const images = ['v1', 'latest'].map((tag) =>
      layout.image([[LAYER, tag]], { annotations: named(`docker.io/library/app:${tag}`) }),
    );
    const file = await layout.archive(images);
    await keepImages(file, loaded, 'docker.io/library/app:latest');
    expect(await pulled('docker.io', 'library/app', 'latest')).toEqual(['latest']);
    await expect(keepImages(file, loaded, 'localhost/other:v1')).rejects.toThrow('it has 2 images');
  });

  it.each([
    ['a tag alone, as skopeo writes it', 'v1', undefined],
    ['a digest', `ghcr.io/team/app@sha256:${'0'.repeat(64)}`, undefined],
    ["an image's ID, as kubelets name them", `sha256:${'0'.repeat(64)}`, undefined],
    ['a tag and a digest', `ghcr.io/team/app:v1@sha256:${'0'.repeat(64)}`, 'ghcr.io/team/app:v1'],
    ['a short name', 'team/app', 'docker.io/team/app:latest'],
  ])('that names its image by %s', async (_, name, ref) => {
    const layout = new Layout();
    const annotations = { 'org.opencontainers.image.ref.name': name };
    const file = await layout.archive([layout.image([[LAYER, 'layer']], { annotations })]);
    const kept = () => keepImages(file, loaded);
    if (ref === undefined) await expect(kept()).rejects.toThrow('give the name with --as');
    else expect(await kept()).toMatchObject([{ ref }]);
    expect(await keepImages(file, loaded, 'localhost/app:v1')).toMatchObject([{ ref: 'localhost/app:v1' }]);
  });

  it('replaces an earlier image', async () => {
    await keepImages(await ofDocker(['app:dev'], 'old'), loaded);
    expect(await pulled('docker.io', 'library/app', 'dev')).toEqual(['old', 'old']);
    await keepImages(await ofLayout({ name: 'docker.io/library/app:dev', layer: 'new' }), loaded);
    expect(await pulled('docker.io', 'library/app', 'dev')).toEqual(['new']);
    expect(await readdir(loaded)).toHaveLength(1);
  });

  it('without a name requires a given one', async () => {
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

describe('output larger than announced', () => {
  const MIB = 1024 ** 2;
  /** A disk of this much beside what etcd keeps, on which the folder alone lies. */
  const disk = (bytes: number) => async (folder: string) => {
    const sizes = await Promise.all((await readdir(folder)).map(async (name) => (await stat(join(folder, name))).size));
    return KEPT_FREE_BYTES + bytes - sizes.reduce((sum, size) => sum + size, 0);
  };

  it.each([
    ['gzip', gzipSync],
    ['zstd', zstdCompressSync],
  ])('is unpacked of %s as far as the disk has room', async (_, pack) => {
    const packed = join(home, 'app.tar.packed');
    await writeFile(packed, pack(Buffer.alloc(200 * MIB)));
    expect((await stat(packed)).size).toBeLessThan(MIB);
    const folder = await mkdtemp(join(home, 'unpacked-'));
    await expect(unpackArchive(packed, folder, disk(130 * MIB))).rejects.toThrow(`no room for the unpacked ${packed}`);
    expect((await stat(join(folder, 'archive.tar'))).size).toBeLessThanOrEqual(130 * MIB);
    await rm(join(folder, 'archive.tar'));
    const whole = await unpackArchive(packed, folder, disk(1000 * MIB));
    expect((await stat(whole)).size).toBe(200 * MIB);
  });

  it("is read from a program up to the reader's limit, which ends the program", async () => {
    const output = async (stdout: Readable) => {
      for await (const _ of stdout) throw new NoRoomError('no room');
    };
    const endless = ['sh', '-c', 'while :; do echo layer; done'];
    await expect(run(endless, { output, timeoutMs: 60_000 })).rejects.toThrow('no room');
  });
});

describe('a local image', () => {
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

  it('is saved from Docker if present', async () => {
    const { asked, run: runs } = machine({ 'docker image': 'ok' });
    expect(await saveFromEngine('app:dev', 'docker.io/library/app:dev', '/tmp/a.tar', runs)).toBe('docker');
    expect(asked).toContain('docker image save app:dev');
  });

  it('is saved from containerd, by full name, otherwise', async () => {
    const { asked, run: runs } = machine({
      'docker image': new Error('Cannot connect to the Docker daemon'),
      'ctr --connect-timeout 2s namespaces': 'default\nk8s.io\n',
      'ctr --namespace default images list': '',
      'ctr --namespace k8s.io images': 'docker.io/library/app:dev',
    });
    expect(await saveFromEngine('app:dev', 'docker.io/library/app:dev', '/tmp/a.tar', runs)).toBe('containerd');
    expect(asked.at(-1)).toBe('ctr --namespace k8s.io images export - docker.io/library/app:dev');
  });

  it('without disk room is requested from no other engine', async () => {
    const asked: string[] = [];
    const full = async (command: string[], _: number, file?: string) => {
      asked.push(command[0]!);
      if (file !== undefined) throw new NoRoomError('the disk of here has no room for app:dev');
      return 'ok';
    };
    await expect(saveFromEngine('app:dev', 'docker.io/library/app:dev', '/tmp/a.tar', full)).rejects.toThrow(
      'the disk of here has no room for app:dev',
    );
    expect(new Set(asked)).toEqual(new Set(['docker']));
  });

  it("in no engine is reported with each engine's error", async () => {
    const { run: runs } = machine({ 'docker image': new Error('No such image: app:dev') });
    await expect(saveFromEngine('app:dev', 'docker.io/library/app:dev', '/tmp/a.tar', runs)).rejects.toThrow(
      'no container engine on this machine has app:dev (docker: No such image: app:dev; podman: is not installed; containerd: is not installed)',
    );
    expect(await readFile('/tmp/a.tar').catch(() => undefined)).toBeUndefined();
  });
});
