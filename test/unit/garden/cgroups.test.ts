import { expect, it } from 'vitest';
import { Cgroups, layoutFrom } from '../../../operator/garden/host/cgroups.ts';

const line = (point: string, type: string, options = 'rw') =>
  `35 31 0:32 / ${point} rw,relatime - ${type} ${type} ${options}`;

it('layoutFrom recognizes cgroup version 2', () => {
  const layout = layoutFrom([line('/', 'ext4'), line('/sys/fs/cgroup', 'cgroup2')].join('\n'));
  expect(layout).toEqual({ version: 2, hierarchies: ['/sys/fs/cgroup'], tracker: '/sys/fs/cgroup' });
});

it('layoutFrom recognizes version 1 with version 2 beside it', () => {
  const points = ['cpu,cpuacct', 'memory', 'pids', 'systemd'].map((name) => line(`/sys/fs/cgroup/${name}`, 'cgroup'));
  const layout = layoutFrom(
    [line('/sys/fs/cgroup', 'tmpfs'), ...points, line('/sys/fs/cgroup/unified', 'cgroup2')].join('\n'),
  );
  expect(layout?.version).toBe(1);
  expect(layout?.tracker).toBe('/sys/fs/cgroup/pids');
  expect(layout?.hierarchies).toContain('/sys/fs/cgroup/unified');
  expect(layout?.hierarchies).toHaveLength(5);
});

it('layoutFrom finds a controller that shares its mount', () => {
  expect(layoutFrom(line('/sys/fs/cgroup/cpu,cpuacct', 'cgroup'))?.tracker).toBe('/sys/fs/cgroup/cpu,cpuacct');
});

it('layoutFrom is undefined without cgroups', () => {
  expect(layoutFrom(line('/', 'ext4'))).toBeUndefined();
  expect(layoutFrom('')).toBeUndefined();
});

it('killAll has nothing to kill where nothing was created', async () => {
  const cgroups = new Cgroups(
    { version: 1, hierarchies: ['/nonexistent/a'], tracker: '/nonexistent/a' },
    'coppice-test',
  );
  await cgroups.killAll();
  await cgroups.remove();
  expect(await cgroups.processes()).toEqual([]);
});
