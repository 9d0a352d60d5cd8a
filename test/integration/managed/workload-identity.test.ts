import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CredentialsBinding } from '../../../operator/api/credentialsbinding.ts';
import { API_VERSION } from '../../../operator/api/group.ts';
import { installManifests } from '../../../operator/api/install.ts';
import { profileManifests } from '../../../operator/api/profiles.ts';
import { OPERATOR_USER } from '../../../operator/api/roles.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import type { WorkloadIdentity } from '../../../operator/api/workloadidentity.ts';
import { Informer, waitFor } from '../../../operator/kube/informer.ts';
import { silent } from '../../../operator/kube/log.ts';
import { Registry } from '../../../operator/kube/metrics.ts';
import {
  CREDENTIALSBINDINGS,
  type KubeObject,
  pathOf,
  SERVICEACCOUNTS,
  WORKERCLUSTERS,
  WORKLOADIDENTITIES,
} from '../../../operator/kube/resources.ts';
import { type Operator, startOperator } from '../../../operator/operator.ts';
import { awsClusters } from '../../../providers/aws/index.ts';
import { azureClusters } from '../../../providers/azure/index.ts';
import type { ManagedClusters } from '../../../providers/cloud.ts';
import { gcpClusters } from '../../../providers/gcp/index.ts';
import type { StackRunner } from '../../../providers/pulumi/stack-runner.ts';
import { startApiserver, type TestApiserver } from '../../kit/apiserver.ts';
import { type Account, type CloudName, type FakeCloud, fakeCloud } from '../../kit/cloud/index.ts';
import { managedOnly } from '../../kit/managed-only.ts';

// Real tokens of a real API server, shown to fake clouds; the operator has the rights that the chart gives it and no others.
const ISSUER = 'https://kubernetes.default.svc';
const POOL = 'projects/123456789012/locations/global/workloadIdentityPools/coppice/providers/garden';
const SHOP = 'shop';

let garden: TestApiserver;
let cloud: FakeCloud;
let operator: Operator;
let bindings: Informer<CredentialsBinding>;
let identities: Informer<WorkloadIdentity>;
let clusters: Informer<WorkerCluster>;
const stop = new AbortController();
let operatorsOwn: ReturnType<TestApiserver['connect']>;

beforeAll(async () => {
  garden = await startApiserver();
  cloud = await fakeCloud();
  const isForSeeds = ({ metadata }: KubeObject) => metadata.name.endsWith(':seed');
  for (const manifest of installManifests().filter((one) => !isForSeeds(one))) await garden.client.apply(manifest);
  for (const name of [SHOP, 'bank'])
    await garden.client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  bindings = new Informer<CredentialsBinding>(garden.client, CREDENTIALSBINDINGS);
  identities = new Informer<WorkloadIdentity>(garden.client, WORKLOADIDENTITIES);
  clusters = new Informer<WorkerCluster>(garden.client, WORKERCLUSTERS);
  for (const cache of [bindings, identities, clusters]) cache.start();
  await Promise.all([bindings, identities, clusters].map((cache) => cache.whenSynced(AbortSignal.timeout(30_000))));
  for (const profile of await profileManifests()) await garden.client.apply(profile);
  const web = await cloud.web();
  const noRunner = {} as StackRunner;
  const managed: Record<string, ManagedClusters> = {
    aws: awsClusters(noRunner, web.aws),
    gcp: gcpClusters(noRunner, web.gcp),
    azure: azureClusters(noRunner, web.azure),
  };
  operatorsOwn = garden.connect(await garden.certificate(OPERATOR_USER));
  operator = await startOperator(
    {
      garden: operatorsOwn,
      log: silent,
      metrics: new Registry(),
      provider: ({ spec: { type } }) => (managed[type] ? managedOnly(type, managed[type]) : undefined),
      state: { namespace: 'kube-system', directory: garden.directory },
    },
    stop.signal,
  );
}, 120_000);
afterAll(async () => {
  stop.abort();
  await Promise.all([operator?.stop(), bindings?.stop(), identities?.stop(), clusters?.stop()]);
  await Promise.all([garden?.stop(), cloud?.close()]);
});

const identity = (name: string, namespace: string, spec: object): KubeObject => ({
  apiVersion: API_VERSION,
  kind: 'WorkloadIdentity',
  metadata: { name, namespace },
  spec,
});
const binding = (name: string, namespace: string, type: string, ref: object): KubeObject => ({
  apiVersion: API_VERSION,
  kind: 'CredentialsBinding',
  metadata: { name, namespace },
  provider: { type },
  credentialsRef: { apiVersion: API_VERSION, kind: 'WorkloadIdentity', ...ref },
});
const ready = (cache: Informer<any>, key: string) =>
  cache.get(key)?.status?.conditions?.find(({ type }: { type: string }) => type === 'Ready');
const until = (what: string, predicate: () => boolean) =>
  waitFor([bindings, identities, clusters], () => predicate() || undefined, { timeoutMs: 30_000, what });
/** What the person who set it up in the cloud has typed there. */
const trusted = (audience: string, name: string, namespace = SHOP) => ({
  issuer: ISSUER,
  subject: `system:serviceaccount:${namespace}:wi-${name}`,
  audience,
});

const CLOUDS: [type: string, cloud: CloudName, audience: string, config: (account: Account) => object, said: string][] =
  [
    [
      'aws',
      'aws',
      'sts.amazonaws.com',
      ({ id }) => ({ roleARN: `arn:aws:iam::${id}:role/coppice`, region: 'eu-central-1' }),
      'AccessDenied: Not authorized to perform sts:AssumeRoleWithWebIdentity',
    ],
    [
      'gcp',
      'gcp',
      `//iam.googleapis.com/${POOL}`,
      ({ id, principal }) => ({
        projectID: id,
        workloadIdentityProvider: POOL,
        serviceAccountEmail: principal,
      }),
      "Permission 'iam.serviceAccounts.getAccessToken' denied",
    ],
    [
      'azure',
      'azure-native',
      'api://AzureADTokenExchange',
      ({ credentials: { tenantID, clientID, subscriptionID } }) => ({ tenantID, clientID, subscriptionID }),
      "AADSTS700213: No matching federated identity record found for presented assertion subject 'system:serviceaccount:bank:wi-azure'",
    ],
  ];

describe.each(CLOUDS)('a WorkloadIdentity of %s', (type, name, audience, config, refusal) => {
  it('shows which trust the cloud needs, and gives a binding an account without a secret', async () => {
    const account = cloud.account(name);
    await garden.client.apply(identity(type, SHOP, { targetSystem: { type, providerConfig: config(account) } }));
    await until('what to trust', () => ready(identities, `${SHOP}/${type}`)?.status === 'True');
    const { issuer, subject } = trusted(audience, type);
    expect(identities.get(`${SHOP}/${type}`)?.status).toMatchObject({ sub: subject, issuer });
    expect(ready(identities, `${SHOP}/${type}`).message).toContain(
      `issuer ${issuer}, subject ${subject}, audience ${audience}`,
    );
    const serviceAccount = await garden.client.get(SERVICEACCOUNTS, `wi-${type}`, SHOP);
    expect(serviceAccount).toMatchObject({
      automountServiceAccountToken: false,
      metadata: { ownerReferences: [{ kind: 'WorkloadIdentity', name: type }] },
    });
    expect(serviceAccount.secrets).toBeUndefined();

    cloud.trust(account, trusted(audience, type));
    await garden.client.apply(binding(type, SHOP, type, { name: type, namespace: SHOP }));
    await until('the binding', () => ready(bindings, `${SHOP}/${type}`)?.status === 'True');
    expect(bindings.get(`${SHOP}/${type}`)?.status?.account).toBe(account.id);
  });

  it('of another tenant is not trusted by the cloud, and the binding shows the missing trust', async () => {
    const account = cloud.account(name);
    await garden.client.apply(identity(type, 'bank', { targetSystem: { type, providerConfig: config(account) } }));
    await garden.client.apply(binding(type, 'bank', type, { name: type }));
    await until('the refusal', () => ready(bindings, `bank/${type}`)?.status === 'False');
    await until(
      'the cloud to say it',
      () => ready(bindings, `bank/${type}`)?.codes?.[0] === 'ERR_INFRA_UNAUTHENTICATED',
    );
    const { message } = ready(bindings, `bank/${type}`);
    const { issuer, subject } = trusted(audience, type, 'bank');
    expect(message).toContain(`the cloud does not know WorkloadIdentity bank/${type}: `);
    expect(message).toContain(refusal);
    expect(message).toContain(`trust issuer ${issuer}, subject ${subject}, audience ${audience}`);
    expect(message).not.toMatch(/eyJ/);
    expect(bindings.get(`bank/${type}`)?.status?.account).toBeUndefined();
  });
});

it('a cluster whose identity was not trusted continues once it is', async () => {
  const key = 'bank/blue';
  const valid = () => clusters.get(key)?.status?.conditions?.find(({ type }) => type === 'CredentialsValid');
  await garden.client.apply({
    apiVersion: API_VERSION,
    kind: 'WorkerCluster',
    metadata: { name: 'blue', namespace: 'bank' },
    spec: { cloudProvider: 'aws', mode: 'Managed', dataPlaneNodes: 1, credentialsRef: { name: 'aws' } },
  });
  await until('the refusal', () => valid()?.status === 'False');
  expect(valid()).toMatchObject({
    codes: ['ERR_INFRA_UNAUTHENTICATED'],
    message: expect.stringContaining('the cloud does not know WorkloadIdentity bank/aws'),
  });
  cloud.trust(cloud.account('aws'), trusted('sts.amazonaws.com', 'aws', 'bank'));
  // The cloud is asked again in two minutes, or when somebody touches the binding.
  const metadata = { annotations: { touched: 'yes' } };
  await garden.client.mergePatch(CREDENTIALSBINDINGS, 'aws', 'bank', { metadata });
  await until('the cluster to be let in', () => valid()?.status === 'True');
  expect(ready(bindings, 'bank/aws').status).toBe('True');
});

it("a binding to another tenant's identity is refused", async () => {
  await expect(garden.client.apply(binding('thief', 'bank', 'aws', { name: 'aws', namespace: SHOP }))).rejects.toThrow(
    'credentials are used in their own namespace only',
  );
});

it('an identity that a binding names stays until the binding is deleted', async () => {
  await garden.client.delete(WORKLOADIDENTITIES, 'gcp', SHOP);
  await until('its deletion to be asked for', () => !!identities.get(`${SHOP}/gcp`)?.metadata.deletionTimestamp);
  await garden.client.delete(CREDENTIALSBINDINGS, 'gcp', SHOP);
  await until('it to go', () => identities.get(`${SHOP}/gcp`) === undefined);
});

it('an existing ServiceAccount is not used for an identity of its name', async () => {
  await garden.client.apply({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'wi-taken', namespace: SHOP },
  });
  const providerConfig = { roleARN: 'arn:aws:iam::123456789012:role/coppice' };
  await garden.client.apply(identity('taken', SHOP, { targetSystem: { type: 'aws', providerConfig } }));
  await until('the refusal', () => ready(identities, `${SHOP}/taken`)?.status === 'False');
  expect(ready(identities, `${SHOP}/taken`)).toMatchObject({
    codes: ['ERR_CONFIGURATION_PROBLEM'],
    message: expect.stringContaining('ServiceAccount shop/wi-taken was not made for WorkloadIdentity shop/taken'),
  });
});

it.each([
  [
    'a field of another cloud',
    {
      type: 'aws',
      providerConfig: { roleARN: 'arn:aws:iam::123456789012:role/a', clientID: '00000000-0000-4000-8000-000000000000' },
    },
    'providerConfig of type aws has the fields roleARN, and perhaps region',
  ],
  [
    'too little',
    { type: 'gcp', providerConfig: { projectID: 'demo-project' } },
    'providerConfig of type gcp has the fields',
  ],
  ['something that is no role', { type: 'aws', providerConfig: { roleARN: 'coppice' } }, 'roleARN'],
])('an identity with %s is refused at admission', async (_what, targetSystem, words) => {
  await expect(garden.client.apply(identity('wrong', SHOP, { targetSystem }))).rejects.toThrow(words);
});

it('the operator cannot get tokens of other ServiceAccounts', async () => {
  await garden.client.apply({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'somebody', namespace: SHOP },
  });
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3600 } };
  await expect(
    operatorsOwn.request('POST', pathOf(SERVICEACCOUNTS, SHOP, 'somebody', 'token'), { body }),
  ).rejects.toThrow('the ServiceAccounts of WorkloadIdentities only');
});
