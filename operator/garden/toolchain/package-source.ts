import { spawn } from 'node:child_process';
import { access, readFile, rm, writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { isExecutable } from './cache.ts';

const APT = '/usr/bin/apt-get';
const POLICY = '/usr/sbin/policy-rc.d';
const POLICY_MARK = '# made by coppice while it installs packages';
const NO_SERVICES = `#!/bin/sh\n${POLICY_MARK}\nexit 101\n`;
/** Services of packages, which are not wanted here. */
const SERVICES: Readonly<Record<string, string>> = {
  'redis-server': 'redis-server.service',
};
/** Another apt process (unattended upgrades) may hold dpkg's lock. */
const LOCK_PATIENCE_SECONDS = 180;

/** Why packages cannot be installed here; undefined: they can. */
export async function whyNoPackages(): Promise<string | undefined> {
  if (!(await isExecutable(APT))) return 'this distribution has no apt-get';
  if (process.getuid?.() !== 0) return 'only root can install packages';
  return undefined;
}

const exists = (file: string) =>
  access(file).then(
    () => true,
    () => false,
  );

interface Run {
  signal?: AbortSignal | undefined;
}

function run(command: string, args: string[], { signal }: Run): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      env: {
        ...process.env,
        DEBIAN_FRONTEND: 'noninteractive',
        NEEDRESTART_SUSPEND: '1',
        LC_ALL: 'C.UTF-8',
      },
      stdio: ['ignore', 'ignore', 'pipe'],
      signal,
    });
    const errors: string[] = [];
    createInterface({ input: child.stderr }).on('line', (line) => {
      if (line.startsWith('E:')) errors.push(line.slice(2).trim());
    });
    child.on('error', reject);
    child.on('close', (code) =>
      code === 0 ? resolve() : reject(new Error(`${args.at(0)} ${errors.join('; ') || `ended with ${code}`}`)),
    );
  });
}

/** Prevents maintainer scripts from starting services during `work`. An existing policy of the machine is kept. */
async function withoutServices(work: () => Promise<void>): Promise<void> {
  const present = await readFile(POLICY, 'utf8').catch(() => undefined);
  const isOurs = present === undefined || present.includes(POLICY_MARK);
  if (isOurs) await writeFile(POLICY, NO_SERVICES, { mode: 0o755 });
  try {
    await work();
  } finally {
    if (isOurs) await rm(POLICY, { force: true });
  }
}

/**
 * Installs distribution packages with one update and one install, non-interactively: services of packaged servers are
 * neither started nor enabled at boot, since Coppice runs its own instances. Throws apt's errors.
 */
export async function installPackages(packages: string[], options: Run): Promise<void> {
  const common = ['-q', '-o', 'Dpkg::Use-Pty=0', '-o', `DPkg::Lock::Timeout=${LOCK_PATIENCE_SECONDS}`];
  const hasService = (pkg: string) => exists(`/lib/systemd/system/${SERVICES[pkg]}`);
  const brought: string[] = [];
  for (const pkg of packages) if (SERVICES[pkg] && !(await hasService(pkg))) brought.push(SERVICES[pkg]);
  // Stale lists may still suffice; only the install decides.
  const update = await run(APT, ['update', ...common], options).catch((error: Error) => error);
  await withoutServices(() =>
    run(APT, ['install', ...common, '--yes', '--no-install-recommends', '--no-upgrade', ...packages], options),
  ).catch((error: Error) => {
    throw update ? new Error(`${error.message} (${update.message})`) : error;
  });
  if (brought.length > 0 && (await exists('/run/systemd/system')))
    await run('systemctl', ['disable', '--now', ...brought], options);
}
