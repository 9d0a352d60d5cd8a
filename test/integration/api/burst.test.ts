import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { load } from 'js-yaml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { BurstPolicy } from '../../../operator/api/burstpolicy.ts';
import { ALPHA_API_VERSION, API_VERSION, LABELS } from '../../../operator/api/group.ts';
import { installManifests } from '../../../operator/api/install.ts';
import { OPERATOR_USER } from '../../../operator/api/roles.ts';
import { DepletedOffers } from '../../../operator/capacity/depleted-offers.ts';
import { candidateRefusalOf } from '../../../operator/controllers/burst/candidates.ts';
import type { BurstDependencies } from '../../../operator/controllers/burst/dependencies.ts';
import { gardenWorld } from '../../../operator/controllers/burst/garden-world.ts';
import { manifestOf } from '../../../operator/controllers/burst/own-clusters.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { BURSTPOLICIES, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { readRefusal } from '../../kit/read-refusal.ts';
import { type SharedApiserver, sharedApiserver } from '../../kit/shared-apiserver.ts';

const GROUP = 'multi-cluster.demo.io';
const RBAC = 'rbac.authorization.k8s.io';
let garden: SharedApiserver;
let operator: KubeClient;
let editor: KubeClient;
/** May write policies, and no clusters. */
let writer: KubeClient;

async function bound(user: string, kind: 'Role' | 'ClusterRole', role: string): Promise<KubeClient> {
  await garden.client.create({
    apiVersion: `${RBAC}/v1`,
    kind: 'RoleBinding',
    metadata: { name: user, namespace: garden.namespace },
    roleRef: { apiGroup: RBAC, kind, name: role },
    subjects: [{ apiGroup: RBAC, kind: 'User', name: user }],
  });
  return garden.connect(await garden.certificate(user));
}

beforeAll(async () => {
  garden = await sharedApiserver();
  for (const manifest of installManifests()) await garden.client.apply(manifest);
  await garden.client.create({
    apiVersion: `${RBAC}/v1`,
    kind: 'Role',
    metadata: { name: 'policies', namespace: garden.namespace },
    rules: [{ apiGroups: [GROUP], resources: ['burstpolicies'], verbs: ['create', 'get', 'patch', 'update'] }],
  });
  operator = garden.connect(await garden.certificate(OPERATOR_USER));
  [editor, writer] = await Promise.all([
    bound('eve', 'ClusterRole', 'coppice:edit'),
    bound('will', 'Role', 'policies'),
  ]);
  // A new CRD is served, and a new policy heeded, a moment after it was made.
  const deadline = Date.now() + 20_000;
  const settled = async () =>
    (await readRefusal(() => garden.client.list(BURSTPOLICIES))) === '' &&
    /may write one there/.test(await readRefusal(() => writer.create(policy('probe'), { dryRun: true })));
  while (!(await settled()) && Date.now() < deadline) await sleep(100);
});
afterAll(() => garden?.leave());

const template = (spec: object = {}) => ({
  metadata: { labels: { fleet: 'production' } },
  spec: { cloudProvider: 'cloud', pools: [{ name: 'a', minimum: 1, maximum: 4 }], ...spec },
});
const policy = (name: string, spec: object = {}): BurstPolicy =>
  ({
    apiVersion: ALPHA_API_VERSION,
    kind: 'BurstPolicy',
    metadata: { name, namespace: garden.namespace },
    spec: {
      hub: 'production',
      maximumClusters: 2,
      budget: { hourly: '10' },
      candidates: [{ name: 'cloud', template: template() }],
      ...spec,
    },
  }) as unknown as BurstPolicy;

describe('a BurstPolicy', () => {
  test('is accepted from a user who may create clusters in its namespace', async () => {
    const made = await editor.create(policy('peak'));
    expect(made.spec.budget).toEqual({ hourly: '10', currency: 'USD' });
  });

  test('is refused from a user who may not, because the operator would create the clusters', async () => {
    expect(await readRefusal(() => writer.create(policy('stolen')))).toMatch(
      /only who may do so in namespace \S+ may write one there/,
    );
    await editor.create(policy('theirs'));
    const patch = (spec: object, labels?: object) =>
      readRefusal(() => writer.mergePatch(BURSTPOLICIES, 'theirs', garden.namespace, { spec, metadata: { labels } }));
    expect(await patch({ maximumClusters: 9 })).toMatch(/may write one there/);
    // Who changes nothing of what it asks for spends nothing.
    expect(await patch({}, { team: 'web' })).toBe('');
  });

  test.each<[string, object, RegExp]>([
    ['no candidates', { candidates: [] }, /candidates/],
    [
      'a candidate that may have more than the policy',
      { candidates: [{ name: 'a', maximumClusters: 3, template: template() }] },
      /may not have more clusters/,
    ],
    ['more clusters at least than nodes at most', { minimumClusters: 2, maximumNodes: 1 }, /more than maximumNodes/],
    ['more clusters at least than at most', { minimumClusters: 3 }, /minimumClusters may not be more/],
    [
      'more warm clusters than the policy may have clusters',
      { candidates: [{ name: 'a', warmClusters: 3, template: template() }] },
      /may not have more warm clusters than the policy has clusters/,
    ],
    [
      'more sleeping clusters than the policy may have clusters',
      { candidates: [{ name: 'a', sleepingClusters: 3, template: template() }] },
      /may not have more sleeping clusters than the policy has clusters/,
    ],
    [
      'two words about when its sleeping clusters sleep',
      { candidates: [{ name: 'a', sleepingClusters: 1, template: template({ hibernation: { enabled: true } }) }] },
      /may not have hibernation in its template/,
    ],
    [
      'two candidates of one name',
      { candidates: [1, 2].map(() => ({ name: 'a', template: template() })) },
      /Duplicate/,
    ],
    [
      'a peak of a candidate that there is not',
      { schedule: [{ name: 'sale', start: '0 20 * * *', duration: '2h', clusters: 1, candidate: 'other' }] },
      /names a candidate that the policy does not have/,
    ],
    [
      'a peak that is larger than the policy',
      { schedule: [{ name: 'sale', start: '0 20 * * *', duration: '2h', clusters: 3 }] },
      /may not have more clusters/,
    ],
    [
      'a peak in no time zone',
      { schedule: [{ name: 'sale', start: '0 20 * * *', duration: '2h', clusters: 1, timeZone: 'Europe/Atlantis' }] },
      /must be a time zone/,
    ],
    ['money that is none', { budget: { hourly: 'much' } }, /hourly/],
    [
      'a template with fields that no cluster has',
      { candidates: [{ name: 'a', template: template({ nodes: 3 }) }] },
      /unknown field|nodes/,
    ],
  ])('is refused with %s', async (_, spec, message) => {
    expect(await readRefusal(() => editor.create(policy('wrong', spec)))).toMatch(message);
  });

  test.each([
    ['hub', { hub: 'other' }],
    ['budget.currency', { budget: { currency: 'EUR' } }],
  ])('keeps its %s', async (what, spec) => {
    const { metadata } = await editor.create(policy(`keeps-${what.replace('.', '-')}`));
    expect(
      await readRefusal(() => editor.mergePatch(BURSTPOLICIES, metadata.name, garden.namespace, { spec })),
    ).toMatch(`${what} cannot be changed`);
  });

  test('of the examples is accepted, and so are its clusters', async () => {
    const text = await readFile(new URL('../../../examples/burst/policy.yaml', import.meta.url), 'utf8');
    const { spec, ...example } = load(text) as BurstPolicy;
    const here = await editor.create({ ...example, ...policy('example'), spec });
    for (const candidate of here.spec.candidates) {
      const cluster = manifestOf(here, candidate, {
        name: `example-${candidate.name}`,
        number: 1,
        nodes: { workers: 3 },
      });
      expect(await readRefusal(() => operator.create(cluster, { dryRun: true }))).toBe('');
    }
  });
});

describe("the operator's user", () => {
  const deps = () =>
    ({
      garden: operator,
      profiles: { get: () => undefined },
      capacity: new DepletedOffers(() => new Date()),
      now: () => new Date(),
    }) as unknown as BurstDependencies;
  const tried = async (spec: object) => {
    const [candidate] = policy('trial', { candidates: [{ name: 'a', template: template(spec) }] }).spec.candidates;
    const owner = { ...policy('trial'), metadata: { ...policy('trial').metadata, uid: 'uid' } };
    return candidateRefusalOf(
      gardenWorld(deps()),
      owner,
      candidate!,
      { nodes: { a: 3 } },
      new AbortController().signal,
    );
  };

  test('validates templates by dry runs, which create nothing', async () => {
    expect(await tried({})).toBeUndefined();
    expect(await tried({ pools: undefined })).toMatch(/API server refuses its template: .*say how many nodes/);
    expect(await tried({ credentialsRef: { name: 'cloud', namespace: 'kube-system' } })).toMatch(/own namespace only/);
    const { items } = await garden.client.list(WORKERCLUSTERS, { namespace: garden.namespace });
    expect(items).toEqual([]);
  });

  test('creates and deletes clusters of a policy, but not of others', async () => {
    const owner = await editor.create(policy('owner'));
    const [candidate] = owner.spec.candidates;
    const cluster = manifestOf(owner, candidate!, { name: 'owner-cloud-1', number: 1, nodes: { a: 3 } });
    const made = await operator.create(cluster);
    expect(made.metadata.labels).toMatchObject({ fleet: 'production', [LABELS.burst]: 'true' });
    expect(made.spec.pools).toEqual([{ name: 'a', minimum: 3, maximum: 4 }]);
    await editor.create({
      apiVersion: API_VERSION,
      kind: 'WorkerCluster',
      metadata: { name: 'mine', namespace: garden.namespace },
      spec: { cloudProvider: 'cloud', dataPlaneNodes: 1 },
    });
    expect(await readRefusal(() => operator.delete(WORKERCLUSTERS, 'owner-cloud-1', garden.namespace))).toBe('');
    expect(await readRefusal(() => operator.delete(WORKERCLUSTERS, 'mine', garden.namespace))).toMatch(
      /the operator deletes only clusters that/,
    );
  });
});
