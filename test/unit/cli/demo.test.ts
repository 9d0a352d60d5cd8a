import { expect, it } from 'vitest';
import { cloudProfileSpec } from '../../../operator/api/cloudprofile.ts';
import { hubSpec } from '../../../operator/api/hub.ts';
import { burstPolicySpec, workerClusterSpec } from '../../../operator/api/index.ts';
import { profileManifests } from '../../../operator/api/profiles.ts';
import { policy, privateCluster, soldAs, stage } from '../../../operator/cli/demo/burst-objects.ts';
import { leftOfDemo } from '../../../operator/cli/demo/clean-up.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';
import { MemoryObjects } from '../../kit/memory-objects.ts';

const profiles = await profileManifests();
const sold = soldAs(profiles);
const local = profiles.find(({ metadata }) => metadata.name === 'local')!;
const staged = stage(local, sold);
const found = (kind: string) => staged.find((one) => one.kind === kind) as KubeObject & { spec: any };

it('the demo tells prices of the profiles that come with Coppice, for machines that are as large as local ones', () => {
  expect(sold).toHaveLength(2);
  for (const { candidate, machineType, region, hourly } of sold) {
    const type = profiles
      .find(({ metadata }) => metadata.name === candidate)!
      .spec.machineTypes.find(({ name }) => name === machineType)!;
    const here = type.price!.regions?.find(({ name }) => name === region) ?? type.price!;
    expect(hourly).toBe(here.hourly);
    expect(type.cpu).toBe(local.spec.machineTypes[0]!.cpu);
  }
  expect(() => soldAs([])).toThrow('CloudProfile aws has no price of m5.large in eu-central-1');
});

it('the objects of the demo are what their kinds allow, and the policy makes clusters of its own profile', () => {
  cloudProfileSpec.parse(found('CloudProfile').spec);
  hubSpec.parse(found('Hub').spec);
  workerClusterSpec.parse(privateCluster.spec);
  const { candidates } = burstPolicySpec.parse(policy(sold).spec);
  const types = found('CloudProfile').spec.machineTypes.map(({ name }: { name: string }) => name);
  for (const { template } of candidates) {
    expect(template.spec.cloudProvider).toBe(found('CloudProfile').metadata.name);
    expect(types).toContain(template.spec.pools![0]!.machineType);
  }
});

it('the demo takes away what an earlier one has left, and nothing that it did not make', async () => {
  const left = (...objects: KubeObject[]) =>
    leftOfDemo(new MemoryObjects(...objects) as unknown as KubeClient, new AbortController().signal);
  expect(await left()).toEqual([]);
  expect(await left(found('Hub'))).toHaveLength(1);
  const theirs = { ...found('Hub'), metadata: { name: 'burst-demo' } };
  await expect(left(theirs)).rejects.toThrow('there is a Hub burst-demo that no demo made');
});
