import { expect, it } from 'vitest';
import { shippedProfiles, withMachineLimit } from '../../../operator/garden/daemon/manifests.ts';
import { mostMachines } from '../../../operator/garden/host/machine-limit.ts';

const GIB = 2 ** 30;

it.each([
  ['cores', { cores: 2, memory: 24 * GIB }, 40],
  ['memory', { cores: 16, memory: 8 * GIB }, 24],
  ['never less than one', { cores: 1, memory: GIB / 8 }, 1],
])('mostMachines is bounded by %s', (_by, computer, most) => {
  expect(mostMachines(computer)).toBe(most);
});

it('only the profile of local machines gets the limit of the computer, and keeps one of its own', async () => {
  const limits = (await shippedProfiles()).map((profile) => [
    profile.metadata.name,
    (withMachineLimit(profile, 40).spec as { limits?: object }).limits,
  ]);
  expect(Object.fromEntries(limits)).toMatchObject({ local: { maxNodesTotal: 40 }, aws: undefined });
  const own = {
    kind: 'CloudProfile',
    metadata: { name: 'mine' },
    spec: { type: 'local', limits: { maxNodesTotal: 7 } },
  };
  expect(withMachineLimit(own as never, 40)).toBe(own);
});
