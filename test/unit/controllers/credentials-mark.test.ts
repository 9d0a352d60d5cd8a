import { expect, it } from 'vitest';
import type { CredentialsBinding } from '../../../operator/api/credentialsbinding.ts';
import { API_VERSION, LABELS, ROLES } from '../../../operator/api/group.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import type { WorkloadIdentity } from '../../../operator/api/workloadidentity.ts';
import {
  type CredentialsDependencies,
  reconcileCredentials,
} from '../../../operator/controllers/credentials/controller.ts';
import { silent } from '../../../operator/kube/log.ts';
import type { KubeObject, Secret } from '../../../operator/kube/resources.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { memoryProfile } from '../../kit/managed-garden.ts';

const binding = {
  apiVersion: API_VERSION,
  kind: 'CredentialsBinding',
  metadata: { name: 'early', namespace: 'shop', uid: 'b', resourceVersion: '1', generation: 1 },
  provider: { type: 'memory' },
  credentialsRef: { apiVersion: 'v1', kind: 'Secret', name: 'later' },
} as CredentialsBinding;
const secret: Secret = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'later', namespace: 'shop', uid: 's', resourceVersion: '2' },
  data: { accessKey: Buffer.from('wrong').toString('base64') },
};

/** The passphrase of Pulumi's state. */
const kept = { data: { passphrase: Buffer.from('x').toString('base64') } };

/** A namespace with a binding, whose Secret is there from the API server's `comes`th answer on. */
function namespace(comes: number) {
  let asked = 0;
  const marks: (string | undefined)[] = [];
  const statuses: KubeObject[] = [];
  const cache = <T>(...objects: T[]) => ({ list: () => objects, get: () => objects[0], absorb: () => {} });
  const deps = partOf<CredentialsDependencies>({
    clusters: cache<WorkerCluster>(),
    bindings: cache(binding),
    credentials: cache<Secret>(),
    identities: cache<WorkloadIdentity>(),
    profiles: cache(memoryProfile),
    clouds: () => ({}),
    log: silent,
    state: { namespace: 'kube-system', directory: '/nowhere', garden: { getOrUndefined: async () => kept } },
    now: () => new Date(0),
    checks: {
      async check() {
        expect(marks).toEqual([ROLES.credentials]);
        return { id: 'account-1', missing: [] };
      },
    },
    garden: {
      getOrUndefined: async () => (++asked >= comes ? secret : undefined),
      async mergePatch(
        _: unknown,
        __: string,
        ___: string,
        { metadata }: { metadata: { labels?: Record<string, string> } },
      ) {
        marks.push(metadata.labels?.[LABELS.role]);
        return secret;
      },
      async apply(object: KubeObject) {
        statuses.push(object);
        return object;
      },
    },
    accepted: () => {},
  });
  const look = () => reconcileCredentials(deps, 'shop', new AbortController().signal);
  const codes = () => (statuses.at(-1) as CredentialsBinding).status?.conditions?.[0]?.codes;
  return { look, codes };
}

it('a Secret is used only once it is labelled, so that each of its changes is noticed', async () => {
  const { look, codes } = namespace(2);
  // It comes between two questions of one look. That look has not seen it, and is worth another one.
  await expect(look()).rejects.toThrow();
  expect(codes()).toEqual(['ERR_RETRYABLE_CONFIGURATION_PROBLEM']);
  await look();
  expect(codes()).toBeUndefined();
});
