import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Cgroups } from '../../../operator/garden/host/cgroups.ts';
import { run } from '../../../operator/garden/host/command.ts';
import { digits } from '../cloud/digits.ts';
import { ignoringAbsent } from './absent.ts';
import type { VPCNetwork } from './vpc.ts';

/** Files that a machine has besides its distribution's, because it is a container. */
const LAYER = fileURLToPath(new URL('image/', import.meta.url));

/** All that an ordinary process of root may have, but what would reach beyond the machine: the kernel's modules, clock and ports. */
const WITHHELD = [
  'CAP_SYS_MODULE',
  'CAP_SYS_TIME',
  'CAP_SYS_RAWIO',
  'CAP_WAKE_ALARM',
  'CAP_MAC_ADMIN',
  'CAP_MAC_OVERRIDE',
];
/** By number, as linux/capability.h has them. */
const CAPABILITIES =
  'CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ'
    .split(' ')
    .map((name) => `CAP_${name}`);

export interface MachineOptions {
  /** The cloud's name of the instance; the machine's namespace, container and cgroup are called so. */
  name: string;
  address: string;
  network: VPCNetwork;
  /** The disk that its own lies on, as image.ts makes it. */
  image: string;
  /** PEM of the authority of its internet. */
  ca: string;
  /** An existing folder for its disk. */
  dir: string;
  /** The cgroups under which it gets its own. */
  cgroups: Cgroups;
  runc: string;
}

/** A machine of a cloud: a container with systemd as its first process, on a disk of its own, in a private network. */
export class Machine {
  readonly options: MachineOptions;
  /** Of its end of the link, in the network's namespace. */
  readonly #link: string;
  readonly #root: string;

  constructor(options: MachineOptions) {
    this.options = options;
    // Long names of machines differ at their ends, and the kernel's of links have 15 characters.
    this.#link = `m${digits(13, options.name)}`;
    this.#root = join(options.dir, options.name);
  }

  #path = (...parts: string[]) => join(this.#root, ...parts);
  get #runc(): string[] {
    return [this.options.runc, '--root', this.#path('runc')];
  }

  /** Switches it on. What it does from then on is its own affair. */
  async boot(): Promise<void> {
    const { image } = this.options;
    for (const folder of ['upper', 'work', 'rootfs', 'containerd', 'kubelet'])
      await mkdir(this.#path(folder), { recursive: true });
    const layers = `lowerdir=${image},upperdir=${this.#path('upper')},workdir=${this.#path('work')}`;
    await run(['mount', '-n', '-t', 'overlay', 'overlay', '-o', layers, this.#path('rootfs')]);
    await this.#writeDisk();
    await writeFile(this.#path('config.json'), JSON.stringify(await this.#specification()));
    await this.#start();
  }

  /** As its reset button does: what it had in memory is gone, and what it had on disk is there. */
  async reset(): Promise<void> {
    await run([...this.#runc, 'delete', '--force', this.options.name]);
    await this.options.network.unplug(this.options.name, this.#link);
    await this.#start();
  }

  async #start(): Promise<void> {
    const { name, network } = this.options;
    await network.plug(name, this.#link, this.options.address);
    // runc leaves a hierarchy of version 2 beside those of version 1 alone: then it is entered before.
    const beside = await this.#besideVersion1();
    const enter = beside === undefined ? [] : ['/bin/sh', '-ec', 'echo 0 >"$0/cgroup.procs"; exec "$@"', beside];
    await run([...enter, ...this.#runc, 'run', '--detach', '--bundle', this.#root, name]);
  }

  async #besideVersion1(): Promise<string | undefined> {
    const { cgroups, name } = this.options;
    const folder = cgroups.layout.hierarchies.find(
      (one) => cgroups.layout.version === 1 && basename(one) === 'unified',
    );
    if (folder === undefined) return undefined;
    const own = join(folder, cgroups.name, name);
    await mkdir(own, { recursive: true });
    return own;
  }

  async #writeDisk(): Promise<void> {
    const { ca } = this.options;
    const write = async (path: string, text: string) => {
      await mkdir(join(this.#path('rootfs'), path, '..'), { recursive: true });
      await writeFile(join(this.#path('rootfs'), path), text);
    };
    const { surroundings } = this.options.network;
    for (const layer of [LAYER, surroundings.layer])
      await run(['cp', '-r', '--no-preserve=ownership', `${layer}.`, this.#path('rootfs')]);
    const trusted = await readFile(join(this.options.image, 'etc/ssl/certs/ca-certificates.crt'), 'utf8');
    await write('etc/ssl/certs/ca-certificates.crt', `${trusted}${ca}`);
    await write(
      'etc/systemd/network/10-eth0.network',
      '[Match]\nName=eth0\n[Network]\nKeepConfiguration=yes\nLinkLocalAddressing=no\n',
    );
    await write(
      'etc/systemd/resolved.conf.d/resolver.conf',
      `[Resolve]\nDNS=${surroundings.resolver}\nLLMNR=no\nMulticastDNS=no\n`,
    );
  }

  /** As runc reads it (OCI runtime specification 1.0). */
  async #specification(): Promise<object> {
    const { name, cgroups } = this.options;
    const all = await grantable();
    const bind = (source: string, destination: string, options: string[] = []) => ({
      destination,
      type: 'bind',
      source,
      options: ['rbind', 'rprivate', ...options],
    });
    return {
      ociVersion: '1.0.2',
      hostname: 'localhost',
      root: { path: 'rootfs' },
      process: {
        terminal: false,
        user: { uid: 0, gid: 0 },
        cwd: '/',
        args: ['/usr/lib/machine/boot'],
        env: ['PATH=/usr/sbin:/usr/bin:/sbin:/bin'],
        capabilities: { bounding: all, effective: all, permitted: all },
      },
      mounts: [
        { destination: '/proc', type: 'proc', source: 'proc' },
        { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'mode=755', 'size=64m'] },
        {
          destination: '/dev/pts',
          type: 'devpts',
          source: 'devpts',
          options: ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620', 'gid=5'],
        },
        { destination: '/dev/shm', type: 'tmpfs', source: 'shm', options: ['nosuid', 'noexec', 'nodev', 'mode=1777'] },
        { destination: '/dev/mqueue', type: 'mqueue', source: 'mqueue', options: ['nosuid', 'noexec', 'nodev'] },
        // Systemd takes a machine whose /sys it may not write for one without devices of its own.
        { destination: '/sys', type: 'sysfs', source: 'sysfs', options: ['nosuid', 'noexec', 'nodev', 'ro'] },
        {
          destination: '/sys/fs/cgroup',
          type: 'cgroup',
          source: 'cgroup',
          options: ['nosuid', 'noexec', 'nodev', 'rw'],
        },
        { destination: '/run', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'nodev', 'mode=755'] },
        { destination: '/tmp', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'nodev', 'mode=1777'] },
        // The kernel's messages are the host's; kubelet insists on a file.
        bind('/dev/null', '/dev/kmsg'),
        // Layers of layers are too many for the kernel.
        bind(this.#path('containerd'), '/var/lib/containerd'),
        bind(this.#path('kubelet'), '/var/lib/kubelet'),
      ],
      linux: {
        cgroupsPath: join('/', cgroups.name, name),
        resources: { devices: [{ allow: true, access: 'rwm' }] },
        namespaces: [
          ...['pid', 'mount', 'uts', 'ipc', 'cgroup'].map((type) => ({ type })),
          { type: 'network', path: `/run/netns/${name}` },
        ],
        rootfsPropagation: 'private',
        readonlyPaths: [
          '/proc/sys/kernel',
          '/proc/sys/vm',
          '/proc/sys/fs',
          '/proc/sysrq-trigger',
          '/proc/irq',
          '/proc/bus',
        ],
        // Of the host's hardware a machine sees nothing: dmidecode has its own.
        maskedPaths: ['/proc/kcore', '/sys/firmware', '/sys/devices/virtual/dmi'],
      },
    };
  }

  /** Runs a command on it, as somebody at its console would. */
  run(command: readonly string[]): Promise<string> {
    return run([...this.#runc, 'exec', '--env', 'SYSTEMD_COLORS=0', this.options.name, ...command]);
  }

  /** Pulls the plug and takes everything of it away, however much of it there is. */
  async end(): Promise<void> {
    const { name, network } = this.options;
    await ignoringAbsent(run([...this.#runc, 'delete', '--force', name]));
    await network.unplug(name, this.#link);
    await run(['umount', '-n', this.#path('rootfs')]).catch(() => {});
    await rm(this.#root, { recursive: true, force: true });
  }
}

/** Capabilities that this process has itself: no other can be given. */
async function grantable(): Promise<string[]> {
  const own = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)/m.exec(await readFile('/proc/self/status', 'utf8'))![1]}`);
  return CAPABILITIES.filter((name, number) => (own >> BigInt(number)) & 1n && !WITHHELD.includes(name));
}
