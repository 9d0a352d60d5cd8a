import { describe, expect, it } from 'vitest';
import type { Owner } from '../../../../providers/cloud.ts';
import { descriptionOf } from '../../../../providers/gcp/labels.ts';
import { computeName } from '../../../../providers/gcp/names.ts';
import { taggedResources } from '../../../../providers/gcp/tagged.ts';
import { FakeGoogle } from './fake-google.ts';
import { context, labels, owner } from './fixtures.ts';

const PATH = '/v1/projects/demo-project:searchAllResources';

const cluster = {
  name: '//container.googleapis.com/projects/demo-project/locations/europe-west3/clusters/shoot--shop--one',
  assetType: 'container.googleapis.com/Cluster',
  location: 'europe-west3',
  labels,
  createTime: '2026-11-20T10:00:00Z',
};
const network = {
  name: '//compute.googleapis.com/projects/demo-project/global/networks/shoot--shop--one',
  assetType: 'compute.googleapis.com/Network',
  location: 'global',
  description: descriptionOf(owner),
};
const machine = {
  name: '//compute.googleapis.com/projects/demo-project/zones/europe-west3-a/instances/m',
  assetType: 'compute.googleapis.com/Instance',
  location: 'europe-west3-a',
  labels,
  additionalAttributes: { machineType: 'projects/demo-project/zones/europe-west3-a/machineTypes/e2-standard-4' },
};
const others = [
  { ...cluster, location: 'us-central1' },
  { ...cluster, location: 'europe-west30' },
  { ...cluster, labels: { team: 'shop' } },
  { ...network, description: 'Made by Coppice: or so somebody wrote' },
  // Never deleted by Google, and free once its versions are destroyed.
  { ...cluster, assetType: 'cloudkms.googleapis.com/CryptoKey' },
];

describe('taggedResources at Google', () => {
  it('lists all pages by label, or by description without labels', async () => {
    const pages: Record<string, object> = {
      '': { results: [cluster, others[0], others[1]], nextPageToken: 'two' },
      two: { results: [], nextPageToken: 'three' },
      three: { results: [network, machine, ...others.slice(2)] },
    };
    await using google = await FakeGoogle.start(({ path, query }) =>
      path === PATH ? { body: pages[query.get('pageToken') ?? ''] } : undefined,
    );
    const { technicalID, uid } = owner;
    expect(await taggedResources(context(), google.endpoints)).toEqual([
      { id: cluster.name, type: cluster.assetType, region: 'europe-west3', owner, createdAt: '2026-11-20T10:00:00Z' },
      { id: network.name, type: network.assetType, region: 'global', owner: { technicalID, uid } },
      { id: machine.name, type: machine.assetType, region: 'europe-west3', owner, machineType: 'e2-standard-4' },
    ]);
    expect(google.asked.at(-1)!.query.get('query')).toContain('labels.coppice-uid:*');
    expect(google.calls).toHaveLength(3);
  });

  it('rejects when Google repeats the same page for ever', async () => {
    const page = { body: { results: [], nextPageToken: 'again' } };
    await using google = await FakeGoogle.start(({ path }) => (path === PATH ? page : undefined));
    await expect(taggedResources(context(), google.endpoints)).rejects.toThrow(
      'resources of project demo-project cannot be listed: the list has more than 1000 pages',
    );
  });

  it('names the pool of groups and templates, also with a long technical ID', async () => {
    const long = { ...owner, technicalID: `shoot--${'a'.repeat(40)}--${'b'.repeat(14)}` };
    const one = (of: Owner, kind: string, part: string, region = 'europe-west3') => ({
      ...network,
      name: `//compute.googleapis.com/projects/demo-project/${kind}s/${computeName(of, part)}`,
      assetType: `compute.googleapis.com/${kind}`,
      location: region,
      description: descriptionOf(of),
    });
    const results = [owner, long].flatMap((of) => [
      one(of, 'InstanceGroupManager', 'web-1'),
      one(of, 'InstanceTemplate', 'web-1-0123abcd', 'global'),
    ]);
    await using google = await FakeGoogle.start(({ path }) =>
      path === PATH ? { body: { results: [network, ...results] } } : undefined,
    );
    const found = await taggedResources(context(), google.endpoints);
    const parts = ['pool-web-1', 'template-web-1'];
    expect(found.map(({ part }) => part)).toEqual([undefined, ...parts, ...parts]);
  });

  it('is empty in a project without resources of the owner', async () => {
    await using google = await FakeGoogle.start(({ path }) => (path === PATH ? { body: {} } : undefined));
    expect(await taggedResources(context(), google.endpoints)).toEqual([]);
  });

  it('rejects without permission, and returns no empty list', async () => {
    const error = { code: 403, message: 'denied', status: 'PERMISSION_DENIED' };
    await using google = await FakeGoogle.start(({ path }) =>
      path === PATH ? { status: 403, body: { error } } : undefined,
    );
    await expect(taggedResources(context(), google.endpoints)).rejects.toMatchObject({
      code: 'ERR_INFRA_UNAUTHORIZED',
    });
  });
});
