import { describe, expect, it } from 'vitest';
import { existingAt } from '../../../../providers/gcp/existing.ts';
import { isGrant } from '../../../../providers/gcp/grants.ts';
import { descriptionOf, gcpLabelsOf } from '../../../../providers/gcp/labels.ts';
import { clusterName, computeName, keyRingName, serviceAccountName } from '../../../../providers/gcp/names.ts';
import { programs } from '../../../../providers/gcp/programs.ts';
import { graphOf } from '../../../kit/pulumi-graph.ts';
import { FakeGoogle } from './fake-google.ts';
import { answers, clusterInputs, context, machinesInputs, networkInputs, owner } from './fixtures.ts';

const theirs = { ...owner, uid: '00000000-0000-4000-8000-000000000000' };
const never = new AbortController().signal;

const REGION = 'projects/demo-project/regions/europe-west3';
const LOCATION = 'projects/demo-project/locations/europe-west3';
const ring = `${LOCATION}/keyRings/${keyRingName(owner)}`;
const cluster = `${LOCATION}/clusters/${clusterName(owner)}`;
const account = `projects/demo-project/serviceAccounts/${serviceAccountName(owner)}@demo-project.iam.gserviceaccount.com`;

/** By type: the path at which Google has it, what it says, given whose it is, and the id that Pulumi imports. */
const cases: [
  type: string,
  inputs: Record<string, unknown>,
  path: string,
  body: (of: typeof owner) => object,
  id: string,
][] = [
  [
    'gcp:compute/network:Network',
    { name: computeName(owner) },
    '/compute/v1/projects/demo-project/global/networks/shoot--shop--one',
    (of) => ({ description: descriptionOf(of) }),
    'projects/demo-project/global/networks/shoot--shop--one',
  ],
  [
    'gcp:compute/subnetwork:Subnetwork',
    { name: computeName(owner, 'nodes') },
    `/compute/v1/${REGION}/subnetworks/shoot--shop--one-nodes`,
    (of) => ({ description: descriptionOf(of) }),
    `${REGION}/subnetworks/shoot--shop--one-nodes`,
  ],
  [
    'gcp:compute/router:Router',
    { name: computeName(owner, 'router') },
    `/compute/v1/${REGION}/routers/shoot--shop--one-router`,
    (of) => ({ description: descriptionOf(of) }),
    `${REGION}/routers/shoot--shop--one-router`,
  ],
  [
    'gcp:compute/routerNat:RouterNat',
    { name: computeName(owner, 'nat') },
    `/compute/v1/${REGION}/routers/shoot--shop--one-router`,
    (of) => ({ description: descriptionOf(of), nats: [{ name: computeName(owner, 'nat') }] }),
    'demo-project/europe-west3/shoot--shop--one-router/shoot--shop--one-nat',
  ],
  [
    'gcp:compute/firewall:Firewall',
    { name: computeName(owner, 'kubelets') },
    '/compute/v1/projects/demo-project/global/firewalls/shoot--shop--one-kubelets',
    (of) => ({ description: descriptionOf(of) }),
    'projects/demo-project/global/firewalls/shoot--shop--one-kubelets',
  ],
  [
    'gcp:compute/instanceTemplate:InstanceTemplate',
    { name: 'shoot--shop--one-workers-12345678' },
    '/compute/v1/projects/demo-project/global/instanceTemplates/shoot--shop--one-workers-12345678',
    (of) => ({ description: descriptionOf(of) }),
    'projects/demo-project/global/instanceTemplates/shoot--shop--one-workers-12345678',
  ],
  [
    'gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager',
    { name: computeName(owner, 'workers') },
    `/compute/v1/${REGION}/instanceGroupManagers/shoot--shop--one-workers`,
    (of) => ({ description: descriptionOf(of) }),
    `${REGION}/instanceGroupManagers/shoot--shop--one-workers`,
  ],
  [
    'gcp:kms/cryptoKey:CryptoKey',
    { name: 'secrets' },
    `/v1/${ring}/cryptoKeys/secrets`,
    (of) => ({ labels: gcpLabelsOf(of) }),
    `${ring}/cryptoKeys/secrets`,
  ],
  [
    'gcp:serviceaccount/account:Account',
    { accountId: serviceAccountName(owner) },
    `/v1/${account}`,
    (of) => ({ description: descriptionOf(of) }),
    account,
  ],
  [
    'gcp:container/cluster:Cluster',
    { name: clusterName(owner) },
    `/v1/${cluster}`,
    (of) => ({ resourceLabels: gcpLabelsOf(of) }),
    cluster,
  ],
  [
    'gcp:container/nodePool:NodePool',
    { name: 'workers-a-12345678' },
    `/v1/${cluster}/nodePools/workers-a-12345678`,
    (of) => ({ config: { resourceLabels: gcpLabelsOf(of) } }),
    `demo-project/europe-west3/${clusterName(owner)}/workers-a-12345678`,
  ],
];

const adoptOne = async (type: string, inputs: Record<string, unknown>, at: string, body: object) => {
  await using google = await FakeGoogle.start(({ path }) => (path === at ? { body } : undefined));
  return await existingAt(google.endpoints, context())({ urn: 'urn', type, name: 'logical', inputs }, never);
};

describe('findExisting at Google', () => {
  it.each(cases)('finds a resource of the owner: %s', async (type, inputs, path, body, id) => {
    expect(await adoptOne(type, inputs, path, body(owner))).toEqual({ id });
  });

  it.each(cases)('ignores a foreign resource of the same name: %s', async (type, inputs, path, body) => {
    expect(await adoptOne(type, inputs, path, body(theirs))).toBeUndefined();
    expect(await adoptOne(type, inputs, path, {})).toBeUndefined();
  });

  it.each(cases)('finds nothing where nothing exists: %s', async (type, inputs) => {
    expect(await adoptOne(type, inputs, '/elsewhere', {})).toBeUndefined();
  });

  it('finds a key ring by its name, which is unique to the owner', async () => {
    const type = 'gcp:kms/keyRing:KeyRing';
    expect(await adoptOne(type, { name: keyRingName(owner) }, `/v1/${ring}`, {})).toEqual({ id: ring });
    const other = `${LOCATION}/keyRings/${keyRingName(theirs)}`;
    expect(await adoptOne(type, { name: keyRingName(theirs) }, `/v1/${other}`, {})).toBeUndefined();
  });

  describe('of a role grant', () => {
    const nodes = `serviceAccount:${serviceAccountName(owner)}@demo-project.iam.gserviceaccount.com`;
    const robot = 'serviceAccount:robot@google';
    const bound = (role: string, member: string, more: object = {}) => ({
      bindings: [{ role, members: ['user:a@b', member], ...more }],
    });

    it.each([
      // Of an account that is not in the state, its address is not known yet.
      [
        'gcp:projects/iAMMember:IAMMember',
        { role: 'roles/n' },
        'projects/demo-project',
        nodes,
        `demo-project roles/n ${nodes}`,
      ],
      [
        'gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember',
        { role: 'roles/n', member: robot },
        `${ring}/cryptoKeys/secrets`,
        robot,
        `demo-project/europe-west3/${keyRingName(owner)}/secrets roles/n ${robot}`,
      ],
    ])('matches role and member: %s', async (type, inputs, on, member, id) => {
      const at = `/v1/${on}:getIamPolicy`;
      expect(await adoptOne(type, inputs, at, bound('roles/n', member))).toEqual({ id });
      expect(await adoptOne(type, inputs, at, bound('roles/n', `${member}.org`))).toBeUndefined();
      expect(await adoptOne(type, inputs, at, bound('roles/other', member))).toBeUndefined();
      expect(await adoptOne(type, inputs, at, bound('roles/n', member, { condition: {} }))).toBeUndefined();
      expect(await adoptOne(type, inputs, at, {})).toBeUndefined();
      expect(await adoptOne(type, inputs, '/elsewhere', {})).toBeUndefined();
    });
  });

  it('rejects when Google does not answer, so that nothing is created twice', async () => {
    await using google = await FakeGoogle.start(({ path }) =>
      path === '/token' ? undefined : { status: 503, body: 'down' },
    );
    const [type, inputs] = cases[0]!;
    const asked = existingAt(google.endpoints, context())({ urn: 'urn', type, name: 'network', inputs }, never);
    await expect(asked).rejects.toMatchObject({ code: 'ERR_RETRYABLE_INFRA_DEPENDENCIES' });
  });

  it('waits for a cluster that Google is still creating, as it has no address yet', async () => {
    const [type, inputs, path, body] = cases.find(([one]) => one === 'gcp:container/cluster:Cluster')!;
    const being = (status: string) => adoptOne(type, inputs, path, { ...body(owner), status });
    await expect(being('PROVISIONING')).rejects.toThrow('is still being created');
    expect(await being('RECONCILING')).toEqual({ id: cluster });
  });

  it('uses one token for a whole run', async () => {
    await using google = await FakeGoogle.start();
    const adopt = existingAt(google.endpoints, context());
    for (const [type, inputs] of cases) await adopt({ urn: 'urn', type, name: 'logical', inputs }, never);
    expect(google.asked.filter(({ path }) => path === '/token')).toHaveLength(1);
  });

  it('covers every type that the programs declare', async () => {
    const graphs = [
      await graphOf(programs.network!, networkInputs),
      await graphOf(programs.cluster!, clusterInputs(), answers),
      await graphOf(programs.machines!, machinesInputs({ kubeletClients: ['198.51.100.0/24'] }), answers),
    ];
    const declared = new Set(graphs.flatMap(({ resources }) => resources.map(({ type }) => type)));
    const known = new Set([...cases.map(([type]) => type), 'gcp:kms/keyRing:KeyRing']);
    expect([...declared].filter((type) => !known.has(type) && !isGrant(type))).toEqual([]);
  });
});
