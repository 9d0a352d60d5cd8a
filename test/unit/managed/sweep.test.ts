import { beforeEach, describe, expect, it } from 'vitest';
import type { KnownOwner } from '../../../operator/accounts/orphans.ts';
import {
  findOrphans,
  removeOrphans,
  type SweepAccount,
  type SweepDependencies,
  stillThere,
} from '../../../operator/controllers/managed/sweep.ts';
import { clusterIn } from '../../../operator/controllers/managed/wish.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { silent } from '../../../operator/kube/log.ts';
import type { CloudContext, Owner, WantedCluster } from '../../../providers/cloud.ts';
import type { ClaimedName, ProviderDNS } from '../../../providers/dns.ts';
import { memoryProfile } from '../../kit/managed-garden.ts';
import { MemoryCloud } from '../../kit/memory-cloud.ts';

const signal = new AbortController().signal;
const owner = (name: string, garden = 'g1'): Owner => ({
  technicalID: `shoot--shop--${name}`,
  uid: `u-${name}`,
  name,
  namespace: 'shop',
  garden,
});

let cloud: MemoryCloud;
let known: KnownOwner[];
const deps: SweepDependencies = {
  garden: 'g1',
  client: undefined as unknown as KubeClient,
  log: silent,
  now: () => new Date('2026-11-21T12:00:00Z'),
  stateBackend: async () => ({ url: 'file:///state', env: {} }),
  owners: async () => known,
  described: () => undefined,
};
const account = (secret: string, accessKey: string, regions = ['here']): SweepAccount => ({
  profile: memoryProfile,
  clouds: cloud.managed('sweep'),
  credentials: { use: { namespace: 'shop', secret }, values: { accessKey }, version: '1' },
  regions,
});

async function make(of: Owner): Promise<void> {
  const ctx: CloudContext = {
    owner: of,
    account: { id: 'account-1', credentials: { accessKey: 'key-1' } },
    region: 'here',
    profile: memoryProfile,
    state: { url: 'file:///state', env: {} },
    log: silent,
    signal,
    now: () => new Date('2026-11-21T11:00:00Z'),
  };
  await cloud.managed('sweep').apply(ctx, clusterIn('here', memoryProfile));
}

beforeEach(async () => {
  cloud = new MemoryCloud();
  known = [owner('kept')];
  for (const of of [owner('kept'), owner('lost'), owner('theirs', 'g2')]) await make(of);
});

describe('a sweep', () => {
  it('lists resources of no cluster of this garden, once, with age', async () => {
    const { found, gaps } = await findOrphans(deps, [account('a', 'key-1'), account('b', 'key-1')], signal);
    expect(found.map(({ id, owner: { name }, ageMs }) => [id, name, ageMs])).toEqual([
      ['cluster-4', 'lost', 3600_000],
      ['network-3', 'lost', 3600_000],
    ]);
    expect(gaps).toEqual([]);
    expect(cloud.made.size).toBe(6);
  });

  it('lists and removes receipts of deleted clusters, and no others', async () => {
    const zone = { id: 'z', domain: 'x.org', private: false };
    const claim = (name: string, cluster: string, garden = 'g1'): ClaimedName => ({
      zone,
      name,
      owner: { garden, namespace: 'shop', name: cluster },
    });
    let claims = [claim('api.kept.x.org', 'kept'), claim('api.lost.x.org', 'lost'), claim('a.x.org', 'lost', 'g2')];
    const dns = {
      claimed: async () => claims,
      remove: async (_ctx, _zone, name) => {
        claims = claims.filter((one) => one.name !== name);
        return true;
      },
    } as Partial<ProviderDNS> as ProviderDNS;
    const accounts = [{ ...account('a', 'key-1'), dns }];
    const { found } = await findOrphans(deps, accounts, signal);
    const receipts = found.filter(({ type }) => type === 'dns:record');
    expect(receipts.map(({ id, region }) => [id, region])).toEqual([['api.lost.x.org', 'global']]);
    expect(await removeOrphans(deps, found, signal)).toEqual([]);
    expect(claims.map(({ name }) => name)).toEqual(['api.kept.x.org', 'a.x.org']);
    expect((await findOrphans(deps, accounts, signal)).found).toEqual([]);
  });

  it('reports where it could not look, and continues elsewhere', async () => {
    const { found, gaps } = await findOrphans(deps, [account('bad', 'revoked'), account('a', 'key-1')], signal);
    expect(found).toHaveLength(2);
    expect(gaps).toHaveLength(1);
    expect(gaps[0]).toContain('memory here with Secret shop/bad: the cloud does not know the access key');
  });

  it('removes exactly the listed resources', async () => {
    const accounts = [account('a', 'key-1')];
    const { found } = await findOrphans(deps, accounts, signal);
    expect(await removeOrphans(deps, found, signal)).toEqual([]);
    expect([...cloud.made.values()].map((resource) => resource.owner.name).sort()).toEqual(
      ['kept', 'kept', 'theirs', 'theirs'].sort(),
    );
  });

  it('leaves resources alone whose cluster exists again', async () => {
    const { found } = await findOrphans(deps, [account('a', 'key-1')], signal);
    known = [...known, { ...owner('lost'), uid: 'another' }];
    await removeOrphans(deps, found, signal);
    expect(cloud.made.size).toBe(6);
  });

  it('removes all resources of unknown owners, and leaves remembered ones to their receipt', async () => {
    const calls: [string, string, string][] = [];
    const told =
      (what: string) =>
      async (ctx: CloudContext, { region }: WantedCluster) => {
        calls.push([what, ctx.owner.technicalID, `${ctx.region}/${region}`]);
      };
    const one = account('a', 'key-1', ['here', 'there']);
    const { found } = await findOrphans(deps, [one], signal);
    const clouds = { ...one.clouds, destroy: told('described'), destroyLeftOvers: told('left over') };
    const seen = found.map((orphan, index) => ({
      ...orphan,
      // As at Google: some of it is in no region, and does not say what its cluster was called.
      ...(index > 0 && { region: 'global', owner: { uid: 'u-lost', technicalID: 'shoot--shop--lost', garden: 'g1' } }),
      by: { ...one, clouds },
    }));
    expect(await removeOrphans(deps, seen, signal)).toEqual([]);
    const only = seen.slice(1);
    expect(await removeOrphans(deps, only, signal)).toEqual([]);
    const remembers = { ...deps, described: () => clusterIn('here', memoryProfile) };
    expect(await removeOrphans(remembers, seen, signal)).toEqual([]);
    expect(calls).toEqual([
      ['left over', 'shoot--shop--lost', 'here/here'],
      ['left over', 'shoot--shop--lost', 'here/here'],
      ['described', 'shoot--shop--lost', 'here/here'],
    ]);
    // Also of an owner that does not say its name.
    known = [...known, { uid: 'another', name: 'lost', namespace: 'shop' }];
    await removeOrphans(deps, only, signal);
    expect(calls).toHaveLength(3);
  });

  it('reports what it could not remove', async () => {
    const { found } = await findOrphans(deps, [account('a', 'key-1')], signal);
    cloud.fail('delete cluster', new Error('the cluster is in use'));
    const failures = await removeOrphans(deps, found, signal);
    expect(failures).toEqual([{ uid: 'u-lost', line: 'what shop/lost left in here: the cluster is in use' }]);
    expect(stillThere((await findOrphans(deps, [account('a', 'key-1')], signal)).found, failures)).toEqual([]);
  });

  it('reports resources that it cannot remove as remaining', async () => {
    const { found } = await findOrphans(deps, [account('a', 'key-1')], signal);
    const volume = { ...found[0]!, id: 'vol-1', type: 'ec2:volume' };
    const nobodys = { ...found[0]!, id: 'vol-2', type: 'ec2:volume', owner: { technicalID: 'x', garden: 'g1' } };
    expect(stillThere([volume, nobodys], [])).toEqual([
      expect.stringMatching(/^ec2:volume vol-1 in here: it is nothing that Coppice itself makes.* remove it by hand$/),
      'ec2:volume vol-2 in here: its tags do not say which cluster it was of; remove it by hand',
    ]);
  });
});
