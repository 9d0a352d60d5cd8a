import { describe, expect, it } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import { FINALIZER } from '../../../operator/api/group.ts';
import type { Quota } from '../../../operator/api/quota.ts';
import type { Shoot } from '../../../operator/api/shoot.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { DepletedOffers } from '../../../operator/capacity/depleted-offers.ts';
import { reconcileCloudProfile } from '../../../operator/controllers/cloudprofile/controller.ts';
import { keptFor, usedByCluster, usedByShoot } from '../../../operator/controllers/kept-profile.ts';
import { byTechnicalID } from '../../../operator/controllers/same-technical-id.ts';
import {
  reconcileWorkerCluster,
  type WorkerClusterDependencies,
} from '../../../operator/controllers/workercluster/controller.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { CLOUDPROFILES, QUOTAS, SHOOTS, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { providerNamed } from '../../../providers/index.ts';
import { buildCloudProfile, buildWorkerCluster } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { MemoryApiServer } from '../../kit/memory-api-server.ts';

const NOW = new Date('2026-11-22T00:00:00Z');
const before: CloudProfile['spec'] = {
  type: 'simulated',
  kubernetes: { versions: [{ version: '1.36.3' }] },
  machineTypes: [{ name: 'small', cpu: 2, gpu: 0, memory: '8Gi' }],
  regions: [{ name: 'north', zones: [{ name: 'a' }] }],
  defaults: { region: 'north', machineType: 'small' },
};
/** Everything that the cluster has was taken away. */
const after: CloudProfile['spec'] = {
  type: 'simulated',
  kubernetes: { versions: [{ version: '1.36.3', expirationDate: '2026-01-01T00:00:00Z' }, { version: '1.37.0' }] },
  machineTypes: [{ name: 'other', cpu: 4, gpu: 0, memory: '8Gi' }],
  regions: [{ name: 'south', zones: [{ name: 'b' }] }],
  defaults: { region: 'south', machineType: 'other', pods: '10.9.0.0/16' },
};

/** A garden with one cluster, which is made, and its profile. */
function garden() {
  const server = new MemoryApiServer(
    buildWorkerCluster({
      metadata: { uid: 'u-1', generation: 1, finalizers: [FINALIZER] },
      spec: { cloudProvider: 'simulated', dataPlaneNodes: 1 },
    }),
    buildCloudProfile({ metadata: { name: 'simulated', generation: 1, finalizers: [FINALIZER] }, spec: before }),
  );
  const cluster = () => server.find<WorkerCluster>(WORKERCLUSTERS, 'one', 'shop')!;
  const profile = () => server.find<CloudProfile>(CLOUDPROFILES, 'simulated')!;
  const shoot = () => server.find<Shoot>(SHOOTS, 'one', 'shop')!;
  const deps = partOf<WorkerClusterDependencies>({
    garden: partOf<KubeClient>(server),
    gardenApplier: {
      async apply(made: Shoot) {
        const metadata = { ...made.metadata, uid: 's-1', generation: 1 };
        const status = { seedName: 'here', kubernetesVersion: '1.36.3' };
        return { object: server.put({ ...made, metadata, status } as Shoot), changed: true };
      },
    },
    clusters: server.cache<WorkerCluster>(WORKERCLUSTERS, byTechnicalID),
    profiles: server.cache<CloudProfile>(CLOUDPROFILES),
    shoots: server.cache<Shoot>(SHOOTS, byTechnicalID),
    quotas: server.cache<Quota>(QUOTAS),
    granted: new Map(),
    capacity: new DepletedOffers(() => NOW),
    now: () => NOW,
    provider: () => providerNamed('simulated'),
    recordEvent: () => {},
    holds: () => [],
  });
  const signal = new AbortController().signal;
  const look = async () => {
    await reconcileWorkerCluster(deps, 'shop/one', signal);
    await reconcileCloudProfile(deps as never, 'simulated', signal);
  };
  return {
    look,
    change: (spec: object) => void server.put({ ...cluster(), spec: { ...cluster().spec, ...spec } }),
    takeAway: async () => {
      server.put({ ...profile(), spec: after });
      await look();
    },
    shoot,
    profile,
    accepted: () => cluster().status?.conditions?.find(({ type }) => type === 'SpecAccepted'),
  };
}

describe('a profile that lost entries a cluster uses', () => {
  it('does not stop the cluster, which can also grow', async () => {
    const { look, change, takeAway, shoot, accepted } = garden();
    await look();
    await takeAway();
    expect(accepted()).toMatchObject({ status: 'True' });
    change({ dataPlaneNodes: 3 });
    await look();
    expect(accepted()?.status).toBe('True');
    expect(shoot().spec.provider.workers?.[0]).toMatchObject({ machine: { type: 'small' }, minimum: 3 });
    expect(shoot().spec).toMatchObject({ region: 'north', kubernetes: { version: '1.36.3' } });
  });

  it('refuses new requests for them, in a condition', async () => {
    const { look, change, takeAway, shoot, accepted } = garden();
    await look();
    await takeAway();
    change({ machineType: 'large' });
    await look();
    expect(accepted()).toMatchObject({ status: 'False', codes: ['ERR_CONFIGURATION_PROBLEM'] });
    expect(accepted()?.message).toContain('has no machine type "large"');
    expect(shoot().spec.provider.workers?.[0]?.machine.type).toBe('small');
  });

  it("keeps the Shoot valid for its provider, with the machines' properties", async () => {
    const { look, takeAway, shoot, profile } = garden();
    await look();
    await takeAway();
    const kept = keptFor(profile(), usedByShoot(shoot())!, NOW);
    const [worker] = shoot().spec.provider.workers!;
    const pool = {
      name: worker!.name,
      machineType: worker!.machine.type,
      count: 1,
      labels: {},
      taints: [],
      zones: ['a'],
    };
    const networking = { pods: '10.1.0.0/16', services: '10.2.0.0/16' };
    const wanted = { region: 'north', kubernetesVersion: '1.36.3', networking, pools: [pool] };
    expect(providerNamed('simulated').validate(wanted, profile())).not.toEqual([]);
    expect(providerNamed('simulated').validate(wanted, kept)).toEqual([]);
    expect(kept.spec.machineTypes.find(({ name }) => name === 'small')).toMatchObject({ cpu: 2, memory: '8Gi' });
  });

  it('refuses new clusters', async () => {
    const { change, takeAway, accepted } = garden();
    change({ region: 'north' });
    await takeAway();
    expect(accepted()?.status).toBe('False');
  });
});

it('a profile with all entries is passed on unchanged', () => {
  const profile = buildCloudProfile({ metadata: { name: 'simulated' }, spec: before });
  const inUse = { versions: ['1.36.3'], region: 'north', zones: ['a'], machineTypes: ['small'] };
  expect(keptFor(profile, inUse, NOW)).toBe(profile);
  expect(keptFor(profile, { versions: [], region: undefined, zones: [], machineTypes: [] }, NOW)).toBe(profile);
});

it("a managed cluster keeps its ranges when the profile's change, since its network would be recreated", () => {
  const cluster = buildWorkerCluster({ metadata: { name: 'one' }, spec: { cloudProvider: 'simulated' } });
  const cidrs = { pods: '10.1.0.0/16', services: '10.2.0.0/16' };
  const profile = buildCloudProfile({ metadata: { name: 'simulated' }, spec: before });
  const kept = (name: string) => {
    const inUse = usedByCluster(cluster, undefined, {
      version: undefined,
      pools: undefined,
      madeIn: { profile: name, region: 'north', cidrs },
    });
    return inUse ? keptFor(profile, inUse, NOW) : profile;
  };
  expect(kept('simulated').spec.defaults).toMatchObject(cidrs);
  // What is left of it elsewhere has nothing to say here.
  expect(kept('another').spec.defaults).toEqual(before.defaults);
});
