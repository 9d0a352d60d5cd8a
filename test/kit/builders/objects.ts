import type { BurstPolicy } from '../../../operator/api/burstpolicy.ts';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import { ALPHA_API_VERSION, API_VERSION } from '../../../operator/api/group.ts';
import type { Hub } from '../../../operator/api/hub.ts';
import type { Membership } from '../../../operator/api/membership.ts';
import type { Quota } from '../../../operator/api/quota.ts';
import type { Seed } from '../../../operator/api/seed.ts';
import type { Shoot } from '../../../operator/api/shoot.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import type { KubeObject, Node, Pod } from '../../../operator/kube/resources.ts';
import type { Machine } from '../../../providers/contract.ts';
import { type DeepPartial, withOverrides } from './partial.ts';

/** Builds objects like `base`, which is the smallest one that the CRD's schema accepts. */
const builderOf =
  <T extends KubeObject>(base: DeepPartial<T> & { apiVersion: string; kind: string }) =>
  (overrides?: DeepPartial<T>): T =>
    withOverrides<T>(base, overrides ?? {});

export const buildWorkerCluster = builderOf<WorkerCluster>({
  apiVersion: API_VERSION,
  kind: 'WorkerCluster',
  metadata: { name: 'one', namespace: 'shop' },
  spec: { cloudProvider: 'cloud', controlPlaneNodes: 1 },
});

/** A profile of one region, `here`, with one machine type, `small`. */
export const buildCloudProfile = builderOf<CloudProfile>({
  apiVersion: API_VERSION,
  kind: 'CloudProfile',
  metadata: { name: 'cloud' },
  spec: {
    type: 'cloud',
    kubernetes: { versions: [{ version: '1.36.3', classification: 'supported' }] },
    machineTypes: [{ name: 'small', cpu: '2', gpu: '0', memory: '8Gi' }],
    regions: [{ name: 'here' }],
  },
});

export const buildShoot = builderOf<Shoot>({
  apiVersion: API_VERSION,
  kind: 'Shoot',
  metadata: { name: 'one', namespace: 'shop' },
  spec: { cloudProfile: { name: 'cloud' }, region: 'here', provider: { type: 'cloud', workers: [] }, kubernetes: {} },
});

export const buildSeed = builderOf<Seed>({
  apiVersion: API_VERSION,
  kind: 'Seed',
  metadata: { name: 'local' },
  spec: { provider: { type: 'local', region: 'here' }, networks: { pods: '10.1.0.0/16', services: '10.3.0.0/16' } },
});

export const buildQuota = builderOf<Quota>({
  apiVersion: API_VERSION,
  kind: 'Quota',
  metadata: { name: 'team', namespace: 'shop' },
  spec: { currency: 'USD', metrics: { nodes: 10 } },
});

export const buildHub = builderOf<Hub>({
  apiVersion: ALPHA_API_VERSION,
  kind: 'Hub',
  metadata: { name: 'production' },
  spec: { type: 'ClusterProfile' },
});

export const buildMembership = builderOf<Membership>({
  apiVersion: ALPHA_API_VERSION,
  kind: 'Membership',
  metadata: { name: 'one.production', namespace: 'shop' },
  spec: { cluster: 'one', hub: 'production' },
});

export const buildBurstPolicy = builderOf<BurstPolicy>({
  apiVersion: ALPHA_API_VERSION,
  kind: 'BurstPolicy',
  metadata: { name: 'peak', namespace: 'shop' },
  spec: {
    hub: 'production',
    maximumClusters: 3,
    budget: { hourly: '10', currency: 'USD' },
    candidates: [
      {
        name: 'cloud',
        template: { spec: { cloudProvider: 'cloud', controlPlaneNodes: 1, pools: [{ name: 'a', maximum: 10 }] } },
      },
    ],
  },
});

/** A node that is Ready. */
export const buildNode = builderOf<Node>({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'one' },
  spec: {},
  status: { conditions: [{ type: 'Ready', status: 'True' }] },
});

export const buildPod = builderOf<Pod>({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'one', namespace: 'shop' },
  spec: { containers: [] },
});

/** A machine that runs. Its node has the same name. */
export const buildMachine = (name: string, overrides: Partial<Machine> = {}): Machine => ({
  name,
  pool: 'workers',
  nodeName: name,
  phase: 'Running',
  ready: true,
  createdAt: '2026-11-21T00:00:00Z',
  ...overrides,
});
