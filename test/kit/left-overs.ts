import { access, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cgroupName, readLayout } from '../../operator/garden/host/cgroups.ts';
import { run } from '../../operator/garden/host/command.ts';
import { networkNames } from '../../operator/garden/host/network.ts';
import type { StateDirectory } from '../../operator/garden/state/state.ts';

/** What a garden that was taken down still has on this machine, one line each: state, processes, mounts, network, cgroups. */
export async function leftOvers(directory: StateDirectory): Promise<string[]> {
  const { root, home, id } = directory;
  const { namespace, link } = networkNames(id);
  const found: string[] = [];
  if (await exists(root)) found.push(`folder ${root}`);
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)) {
    const [commandLine, environment, groups] = await Promise.all(
      ['cmdline', 'environ', 'cgroup'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')),
    );
    // One without a command line has ended; the kernel keeps its number until init asks for it, which takes time on a busy machine.
    if (commandLine === '') continue;
    const isOurs =
      commandLine!.includes(root) ||
      environment!.split('\0').includes(`COPPICE_HOME=${home}`) ||
      groups!.includes(`/${cgroupName(id)}`);
    if (isOurs) found.push(`process ${pid}: ${commandLine!.replaceAll('\0', ' ').slice(0, 200)}`);
  }
  for (const line of (await readFile('/proc/self/mountinfo', 'utf8')).split('\n')) {
    if (line.includes(home) || line.includes(namespace)) found.push(`mount ${line}`);
  }
  const [namespaces, links, routes] = await Promise.all([
    run(['ip', 'netns', 'list']),
    run(['ip', '-o', 'link', 'show']),
    run(['ip', 'route', 'show', 'table', 'all']),
  ]);
  for (const line of `${namespaces}${links}${routes}`.split('\n')) {
    if (line.includes(namespace) || line.includes(link)) found.push(`network ${line}`);
  }
  const layout = await readLayout();
  for (const hierarchy of layout?.hierarchies ?? []) {
    const folder = join(hierarchy, cgroupName(id));
    if (await exists(folder)) found.push(`cgroup ${folder}`);
  }
  return found;
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
