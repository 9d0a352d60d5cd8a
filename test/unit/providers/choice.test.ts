import { describe, expect, it } from 'vitest';
import { silent } from '../../../operator/kube/log.ts';
import { openProviders, providerFor } from '../../../providers/index.ts';
import { memoryProfile } from '../../kit/managed-garden.ts';

const OPTIONS = {
  engine: () => Promise.reject(new Error('nobody asks for it')),
  home: '/nonexistent/never-made',
  log: silent,
};
const providers = openProviders(OPTIONS);
const profile = (type: string, provider?: string) => ({
  ...memoryProfile,
  spec: { ...memoryProfile.spec, type, ...(provider && { provider }) },
});

describe('providerFor a profile', () => {
  it.each<[string, string, string | undefined, boolean, boolean, string | undefined]>([
    ['a cloud, with an account, on a laptop', 'aws', undefined, true, true, 'aws'],
    ['a cloud, without an account, on a laptop', 'aws', undefined, true, false, 'simulated'],
    ['a cloud that is told to be itself', 'aws', 'aws', true, false, 'aws'],
    ['a cloud that is told to be simulated', 'aws', 'simulated', false, true, 'simulated'],
    ['a cloud nobody knows, on a laptop', 'moon', undefined, true, true, 'simulated'],
    ['a cloud nobody knows', 'moon', undefined, false, true, undefined],
    ['a cloud, without an account', 'gcp', undefined, false, false, 'gcp'],
    ['this machine', 'local', undefined, true, false, 'local'],
  ])('returns the provider for %s', (_what, type, provider, simulate, withAccount, name) => {
    expect(providerFor(profile(type, provider), providers, { simulate, withAccount })?.name).toBe(name);
  });

  it('offers machines as privileged pods only if localMachines.allowed is set', () => {
    expect(providers.named('local')?.barred).toMatch(
      /Whoever runs this garden must allow them: localMachines\.allowed/,
    );
    expect(openProviders({ ...OPTIONS, localMachines: true }).named('local')?.barred).toBeUndefined();
  });

  it('offers a managed service for clouds only', () => {
    for (const name of ['aws', 'gcp', 'azure']) expect(providers.named(name)?.managed?.version).toContain(name);
    expect(providers.named('local')?.managed).toBeUndefined();
  });
});
