import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { buildImage } from '../../operator/garden/images/build.ts';
import { findGo } from '../../operator/garden/toolchain/go-source.ts';
import type { Toolchain } from '../../operator/garden/toolchain/toolchain.ts';
import { GO_MODULES, TOOLS, type ToolName } from '../../operator/garden/toolchain/tools.ts';
import { debianTree, type Tree } from './debian.ts';

type ImageSpec = Parameters<typeof buildImage>[0];

const exec = promisify(execFile);

/** Packages of which only these are asked for by name; what they need comes with them. */
const SETS = {
  // A shell that is not busybox's, which would run its own `nc` and `wget` in place of those of the image.
  network: [
    ...['bash', 'bind9-dnsutils', 'coreutils', 'curl', 'dash', 'findutils', 'grep', 'hostname', 'iperf', 'iproute2'],
    ...['libc-bin', 'mawk', 'netcat-openbsd', 'procps', 'sed', 'usr-is-merged', 'util-linux'],
  ],
  nginx: ['coreutils', 'dash', 'libc-bin', 'nginx', 'usr-is-merged'],
  // Debian's busybox keeps names such as `data-1` from programs that its shell starts, and bash does not: tests of these start "sh". One of
  // messages starts "/bin/sh", and asks for those of busybox.
  busybox: ['bash-static', 'busybox-static'],
} as const;
type Base = keyof typeof SETS;

interface TestImage {
  /** Packages under it. */
  base?: Base;
  /** Programs of the toolchain, and where they are in it. */
  tools?: { tool: ToolName; path: string; mode?: number }[];
  /** Files of Kubernetes' own source tree, below `test/images`. */
  sources?: { source: string; path: string }[];
  files?: ImageSpec['files'];
  links?: ImageSpec['links'];
  directories?: ImageSpec['directories'];
  entrypoint?: string[];
  cmd?: string[];
  user?: string;
}

const agnhost: TestImage = {
  base: 'network',
  tools: [
    { tool: 'agnhost', path: '/agnhost' },
    { tool: 'coredns', path: '/coredns' },
  ],
  sources: ['localhost.crt', 'localhost.key'].map((name) => ({ source: `agnhost/porter/${name}`, path: `/${name}` })),
  links: [
    { path: '/agnhost-2', target: 'agnhost' },
    { path: '/usr/bin/nc', target: 'nc.openbsd' },
    { path: '/usr/bin/awk', target: 'mawk' },
  ],
  directories: [{ path: '/uploads' }],
  entrypoint: ['/agnhost'],
  cmd: ['pause'],
};
const pets = (name: string): TestImage => ({
  ...agnhost,
  sources: [
    ...(agnhost.sources ?? []),
    { source: `${name}/html/${name}.jpg`, path: `/${name}.jpg` },
    { source: `${name}/html/data.json`, path: '/data.json' },
  ],
  cmd: ['test-webserver'],
});
const busybox: TestImage = { base: 'busybox', cmd: ['sh'] };
const nginx: TestImage = {
  base: 'nginx',
  files: [
    {
      path: '/etc/nginx/nginx.conf',
      content:
        'events {}\nerror_log stderr;\npid /tmp/nginx.pid;\n' +
        'http { access_log /dev/stdout; server { listen 80; root /usr/share/nginx/html; } }\n',
    },
  ],
  directories: [{ path: '/var/log/nginx' }, { path: '/var/lib/nginx' }],
  cmd: ['nginx', '-g', 'daemon off;'],
};

const E2E = 'registry.k8s.io/e2e-test-images';
/** Images of the conformance tests of Kubernetes 1.36.3, under the names that these ask for. */
export const TEST_IMAGES: Readonly<Record<string, TestImage>> = {
  [`${E2E}/agnhost:2.63.0`]: agnhost,
  [`${E2E}/agnhost:2.55`]: agnhost,
  [`${E2E}/busybox:1.37.0-1`]: busybox,
  [`${E2E}/glibc-dns-testing:2.0.0`]: { base: 'network', cmd: ['bash'] },
  // The test of image volumes looks for this system's name in it.
  [`${E2E}/kitten:1.8`]: {
    ...pets('kitten'),
    files: [{ path: '/etc/os-release', content: 'NAME="A stand-in for Alpine Linux"\n' }],
  },
  [`${E2E}/nautilus:1.8`]: pets('nautilus'),
  [`${E2E}/nginx:1.15-4`]: nginx,
  [`${E2E}/nginx:1.27-0`]: nginx,
  [`${E2E}/nonewprivs:1.4`]: {
    base: 'busybox',
    tools: [{ tool: 'nonewprivs', path: '/usr/local/bin/nnp', mode: 0o4755 }],
    cmd: ['nnp'],
  },
  [`${E2E}/nonroot:1.5`]: { ...busybox, user: '1234' },
  [`${E2E}/sample-apiserver:1.29.2`]: {
    tools: [{ tool: 'sample-apiserver', path: '/sample-apiserver' }],
    entrypoint: ['/sample-apiserver'],
  },
  'registry.k8s.io/etcd:3.6.8-0': {
    tools: [{ tool: 'etcd', path: '/usr/local/bin/etcd' }],
    entrypoint: ['/usr/local/bin/etcd'],
  },
  'registry.k8s.io/pause:3.10.2': { tools: [{ tool: 'pause', path: '/pause' }], entrypoint: ['/pause'], user: '65535' },
};

/** Tools that images are made of. */
export const IMAGE_TOOLS: ToolName[] = [
  ...new Set(Object.values(TEST_IMAGES).flatMap(({ tools = [] }) => tools.map(({ tool }) => tool))),
];

/** What libraries and programs look up. */
const ACCOUNTS: ImageSpec['files'] = [
  {
    path: '/etc/passwd',
    content:
      'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n' +
      'user-defined-in-image:x:1000:1000::/home/user:/bin/sh\n',
  },
  {
    path: '/etc/group',
    content:
      'root:x:0:\nnogroup:x:65534:\nuser-defined-in-image:x:1000:\n' +
      'group-defined-in-image:x:50000:user-defined-in-image\n',
  },
  // Without it the C library asks DNS before it reads /etc/hosts.
  { path: '/etc/nsswitch.conf', content: 'passwd: files\ngroup: files\nhosts: files dns\n' },
];

/**
 * Makes the images, without any registry: of programs that the toolchain builds, and of Debian packages.
 * @returns the archive of each, for `coppice load`. They lie where no garden's mirror looks: other gardens never have them.
 */
export async function makeTestImages(toolchain: Toolchain, say: (text: string) => void): Promise<Map<string, string>> {
  const toolsDir = join(toolchain.dir, 'conformance');
  const programs = await toolchain.ensure(IMAGE_TOOLS);
  const sources = await kubernetesSources();
  const trees = new Map<Base, Tree>();
  const archives = new Map<string, string>();
  for (const [ref, image] of Object.entries(TEST_IMAGES)) {
    const { base } = image;
    if (base && !trees.has(base)) {
      trees.set(base, await debianTree(SETS[base], toolsDir));
      if (base === 'busybox') await addApplets(trees.get(base)!);
    }
    const tree = base && trees.get(base);
    const files = [
      ...(image.tools ?? []).map(({ tool, path, mode }) => ({ path, from: programs[tool], mode: mode ?? 0o755 })),
      ...(image.sources ?? []).map(({ source, path }) => ({ path, from: join(sources, source), mode: 0o644 })),
      ...(image.files ?? []),
      ...ACCOUNTS,
    ];
    const links = [...(image.links ?? [])];
    const spec: ImageSpec = {
      ref,
      files: [...(tree?.files ?? []).filter((file) => !isOneOf(file, files)), ...files],
      links: [...(tree?.links ?? []).filter((link) => !isOneOf(link, [...files, ...links])), ...links],
      directories: [
        ...(tree?.directories ?? [{ path: '/tmp', mode: 0o1777 }]),
        { path: '/root', mode: 0o700 },
        ...(image.directories ?? []),
      ],
      entrypoint: image.entrypoint ?? [],
      ...(image.cmd && { cmd: image.cmd }),
      ...(image.user !== undefined && { user: image.user }),
    };
    archives.set(ref, await buildImage(spec, { toolsDir }));
    say(`image ${ref} is made`);
  }
  return archives;
}

const isOneOf = ({ path }: { path: string }, others: readonly { path: string }[]): boolean =>
  others.some((other) => other.path === path);

/** `ls`, `wget` and all else that this busybox can be called; and bash, as `sh`, first in the search path. */
async function addApplets(tree: Tree): Promise<void> {
  const program = tree.files.find(({ path }) => path.endsWith('/bin/busybox'))?.from;
  if (!program) throw new Error('the package of busybox has no program');
  const { stdout } = await exec(program, ['--list']);
  for (const name of stdout.trim().split('\n')) {
    if (name !== 'busybox') tree.links.push({ path: `/usr/bin/${name}`, target: 'busybox' });
  }
  tree.links.push({ path: '/usr/local/bin/sh', target: '../../bin/bash-static' });
}

/** Folder `test/images` of the module that tools of Kubernetes are built from. Whoever has these tools need not have the module any more. */
export async function kubernetesSources(): Promise<string> {
  const go = await findGo();
  if (!go) throw new Error('Go is not installed: images of conformance tests are made from Go sources');
  const { stdout } = await exec(go, ['mod', 'download', '-json', 'k8s.io/kubernetes'], {
    cwd: join(GO_MODULES, TOOLS.agnhost.build!.module),
    env: { ...process.env, GOWORK: 'off', GOFLAGS: '-mod=readonly' },
  });
  return join((JSON.parse(stdout) as { Dir: string }).Dir, 'test', 'images');
}

/** Which of these refs Kubernetes' list of its images does not have: `e2e.test --list-images`. */
export const unknownImages = (listed: string): string[] => {
  const names = new Set(listed.split('\n').map((line) => line.trim()));
  return Object.keys(TEST_IMAGES).filter((ref) => !names.has(ref));
};
