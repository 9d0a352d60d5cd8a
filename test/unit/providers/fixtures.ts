import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import type { KubeObject } from '../../../operator/api/meta.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import { silent } from '../../../operator/kube/log.ts';
import { keyOf, type Resource, resourceOf } from '../../../operator/kube/resources.ts';
import type { Pool, ProviderContext, WantedSpec } from '../../../providers/contract.ts';

export const profile: CloudProfile = {
  apiVersion: 'multi-cluster.demo.io/v1',
  kind: 'CloudProfile',
  metadata: { name: 'test' },
  spec: {
    type: 'test',
    kubernetes: { versions: [{ version: '1.36.3' }] },
    regions: [{ name: 'north', zones: [{ name: 'north-a' }, { name: 'north-b' }] }],
    machineTypes: [
      { name: 'm', cpu: '2', gpu: '0', memory: '8Gi' },
      { name: 'odd', cpu: '1500m', gpu: '0', memory: '1Gi', pods: 20 },
      { name: 'gpu', cpu: '4', gpu: '1', memory: '16Gi', architecture: 'arm64', pods: 58 },
      { name: 'retired', cpu: '1', gpu: '0', memory: '1Gi', usable: false },
    ],
  },
} as CloudProfile;

export const pool = (changes: Partial<Pool> = {}): Pool => ({
  name: 'workers',
  machineType: 'm',
  count: 2,
  labels: {},
  taints: [],
  zones: ['north-a', 'north-b'],
  ...changes,
});

export const wanted = (changes: Partial<WantedSpec> = {}): WantedSpec => ({
  region: 'north',
  kubernetesVersion: '1.36.3',
  networking: { pods: '10.96.0.0/16', services: '10.97.0.0/16' },
  pools: [pool()],
  ...changes,
});

export function context(changes: Partial<ProviderContext> = {}): ProviderContext {
  return {
    seed: new FakeCluster().client,
    namespace: 'shoot--team--one',
    shootName: 'one',
    shootNamespace: 'team',
    technicalID: 'shoot--team--one',
    uid: '0b3c',
    region: 'north',
    kubernetesVersion: '1.36.3',
    apiserverURL: 'https://10.1.0.5:6443',
    clusterCA: 'CLUSTER CA\n',
    podCIDR: '10.96.0.0/16',
    serviceCIDR: '10.97.0.0/16',
    dnsIP: '10.97.0.10',
    clusterDomain: 'cluster.local',
    imageMirror: 'http://10.2.0.2:5000',
    vni: 4242,
    profile,
    bootstrapKubeconfig: async (name) => `bootstrap of ${name}`,
    kubeProxyKubeconfig: async () => 'kube-proxy',
    componentKubeconfig: async (user) => `kubeconfig of ${user}`,
    log: silent,
    ...changes,
  };
}

/** An API server in memory, as far as providers use one; counts writes. */
export class FakeCluster {
  readonly objects = new Map<string, KubeObject>();
  writes: string[] = [];
  #version = 1;

  static keyOf(resource: Resource, name: string, namespace?: string): string {
    return `${resource.kind}/${namespace ? `${namespace}/` : ''}${name}`;
  }

  put(object: KubeObject): KubeObject {
    const stored = structuredClone(object);
    stored.metadata.resourceVersion = String(this.#version++);
    stored.metadata.uid ??= `uid-${this.#version}`;
    stored.metadata.creationTimestamp ??= '2026-01-01T00:00:00Z';
    this.objects.set(`${object.kind}/${keyOf(object)}`, stored);
    return structuredClone(stored);
  }

  get<T extends KubeObject>(key: string): T {
    const found = this.objects.get(key);
    if (!found) throw new Error(`${key} is not there: ${[...this.objects.keys()].join(', ')}`);
    return found as T;
  }

  /** Names of all objects of a kind. */
  names(kind: string): string[] {
    return [...this.objects.values()]
      .filter((object) => object.kind === kind)
      .map((object) => object.metadata.name)
      .sort();
  }

  readonly client = {
    getOrUndefined: async (resource: Resource, name: string, namespace?: string) =>
      structuredClone(this.objects.get(FakeCluster.keyOf(resource, name, namespace))),
    list: async (
      resource: Resource,
      options: { namespace?: string; labelSelector?: string; fieldSelector?: string } = {},
    ) => ({ metadata: {}, items: this.#select(resource, options).map((object) => structuredClone(object)) }),
    create: async (object: KubeObject) => {
      this.writes.push(`create ${object.kind} ${object.metadata.name}`);
      if (this.objects.has(`${object.kind}/${keyOf(object)}`))
        throw new KubeApiError('POST', 409, { reason: 'AlreadyExists' });
      return this.put(object);
    },
    apply: async (object: KubeObject) => {
      this.writes.push(`apply ${object.kind} ${object.metadata.name}`);
      const live = this.objects.get(`${object.kind}/${keyOf(object)}`);
      return this.put(merged(live ?? {}, object) as KubeObject);
    },
    mergePatch: async (resource: Resource, name: string, namespace: string | undefined, patch: object) => {
      this.writes.push(`patch ${resource.kind} ${name}`);
      const live = this.objects.get(FakeCluster.keyOf(resource, name, namespace));
      if (!live) throw new KubeApiError('PATCH', 404, { reason: 'NotFound' });
      return this.put(merged(live, patch) as KubeObject);
    },
    jsonPatch: async (
      resource: Resource,
      name: string,
      namespace: string | undefined,
      operations: readonly { op: string; path: string; value?: unknown }[],
    ) => {
      this.writes.push(`patch ${resource.kind} ${name}`);
      const live = structuredClone(this.objects.get(FakeCluster.keyOf(resource, name, namespace)));
      if (!live) throw new KubeApiError('PATCH', 404, { reason: 'NotFound' });
      for (const { op, path, value } of operations) {
        const steps = path.slice(1).split('/');
        const last = steps.pop()!;
        const parent = steps.reduce((part: any, step) => part[step], live);
        if (op === 'replace') parent[last] = value;
        else if (op !== 'test') throw new Error(`${op} is not known here`);
        else if (parent[last] !== value) throw new KubeApiError('PATCH', 422, { reason: 'Invalid' });
      }
      return this.put(live);
    },
    delete: async (
      resource: Resource,
      name: string,
      namespace?: string,
      { preconditions = {} }: { preconditions?: { uid?: string; resourceVersion?: string } } = {},
    ) => {
      this.writes.push(`delete ${resource.kind} ${name}`);
      const key = FakeCluster.keyOf(resource, name, namespace);
      const live = this.objects.get(key);
      for (const field of ['uid', 'resourceVersion'] as const) {
        const meant = preconditions[field];
        if (live && meant !== undefined && (live.metadata[field] ?? meant) !== meant)
          throw new KubeApiError('DELETE', 409, { reason: 'Conflict' });
      }
      return this.objects.delete(key);
    },
    deleteCollection: async (resource: Resource, options: { namespace?: string; labelSelector?: string }) => {
      this.writes.push(`delete all ${resource.kind}`);
      for (const object of this.#select(resource, options)) this.objects.delete(`${object.kind}/${keyOf(object)}`);
    },
  } as unknown as KubeClient;

  #select(
    resource: Resource,
    options: { namespace?: string; labelSelector?: string; fieldSelector?: string },
  ): KubeObject[] {
    return [...this.objects.values()].filter(
      (object) =>
        resourceOf(object) === resource &&
        (!options.namespace || object.metadata.namespace === options.namespace) &&
        (!options.fieldSelector || object.spec?.nodeName === options.fieldSelector.split('=')[1]) &&
        (options.labelSelector ?? '').split(',').every((term) => {
          const [key, value] = term.split('=') as [string, string?];
          const live = object.metadata.labels?.[key];
          return term === '' || (value === undefined ? live !== undefined : live === value);
        }),
    );
  }
}

function merged(live: any, patch: any): any {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const result = typeof live === 'object' && live !== null ? { ...live } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = merged(result[key], value);
  }
  return result;
}
