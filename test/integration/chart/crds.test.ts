import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { crds } from '../../../operator/api/crd.ts';
import { ANNOTATIONS, API_VERSION } from '../../../operator/api/group.ts';
import { clusterRole, crdJobRules } from '../../../operator/api/roles.ts';
import { bringCrds } from '../../../operator/chart/bring-crds.ts';
import { KubeClient } from '../../../operator/kube/client.ts';
import { CRDS, type KubeObject, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { startApiserver, type TestApiserver } from '../../kit/apiserver.ts';

const NAMES = crds().map(({ metadata }) => metadata.name);
const WORKER_CLUSTERS = 'workerclusters.multi-cluster.demo.io';

let garden: TestApiserver;
/** With the rights of the chart's Job alone. */
let job: KubeClient;
const crd = (name = WORKER_CLUSTERS) => garden.client.get(CRDS, name);
const fieldsOf = ({ spec }: KubeObject): string[] =>
  Object.keys(spec.versions[0].schema.openAPIV3Schema.properties.spec.properties);

beforeAll(async () => {
  garden = await startApiserver();
  await garden.client.apply({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'coppice-crds', namespace: 'default' },
  });
  await garden.client.apply(clusterRole('coppice-crds', crdJobRules(NAMES)));
  await garden.client.apply({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'coppice-crds' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'coppice-crds' },
    subjects: [{ kind: 'ServiceAccount', name: 'coppice-crds', namespace: 'default' }],
  });
  const { status } = await garden.client.request<{ status: { token: string } }>(
    'POST',
    '/api/v1/namespaces/default/serviceaccounts/coppice-crds/token',
    { body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} } },
  );
  job = new KubeClient({ server: garden.url, ca: garden.ca, token: status.token });
});
afterAll(async () => {
  await job?.close();
  await garden?.stop();
});

describe('the Job that updates CRDs', () => {
  it('updates the CRDs of an older chart to this release, including removed fields', async () => {
    const old = structuredClone(crds().find(({ metadata }) => metadata.name === WORKER_CLUSTERS)!);
    const { properties } = old.spec.versions[0].schema.openAPIV3Schema.properties.spec;
    delete properties.ttl;
    properties.gone = { type: 'string', description: 'Of another time.' };
    // As Helm writes what is in crds/.
    await garden.client.apply(old, { fieldManager: 'helm' });

    const lines = await bringCrds(job, '0.2.0');
    expect(lines).toHaveLength(NAMES.length);
    expect(lines).toContain(`${WORKER_CLUSTERS} is that of release 0.2.0 now`);
    const fields = fieldsOf(await crd());
    expect(fields).toContain('ttl');
    expect(fields).not.toContain('gone');
    // All are served when it ends.
    await garden.client.list(WORKERCLUSTERS);
  });

  it('changes nothing when it runs again', async () => {
    const { metadata } = await crd();
    expect(await bringCrds(job, '0.2.0')).toEqual(NAMES.map((name) => `${name} is up to date`));
    expect((await crd()).metadata.resourceVersion).toBe(metadata.resourceVersion);
  });

  it('keeps CRDs of a newer release, and their objects, on a rollback', async () => {
    const newer = await crd();
    newer.metadata.annotations![ANNOTATIONS.release] = '0.3.0';
    newer.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.later = {
      type: 'string',
      description: 'Of a later release.',
    };
    await garden.client.update(newer);
    const make = () =>
      garden.client.create({
        apiVersion: API_VERSION,
        kind: 'WorkerCluster',
        metadata: { name: 'kept', namespace: 'default' },
        spec: { cloudProvider: 'simulated', dataPlaneNodes: 1, later: 'stays' },
      });
    // A changed schema is heeded a moment after it was written.
    await expect
      .poll(() =>
        make().then(
          () => 'made',
          (error: Error) => error.message,
        ),
      )
      .toBe('made');

    expect(await bringCrds(job, '0.2.0')).toContain(
      `${WORKER_CLUSTERS} stays: release 0.3.0 wrote it, which is newer than 0.2.0`,
    );
    expect(fieldsOf(await crd())).toContain('later');
    const { spec } = await garden.client.get(WORKERCLUSTERS, 'kept', 'default');
    expect(spec.later).toBe('stays');
  });

  it('writes no CRD if one stores a version that this release cannot read', async () => {
    const found = await crd();
    found.metadata.annotations![ANNOTATIONS.release] = '0.1.0';
    found.spec.versions.push({ ...structuredClone(found.spec.versions[0]), name: 'v1old', storage: false });
    const { status } = await garden.client.update(found);
    await garden.client.update(
      { ...(await crd()), status: { ...status, storedVersions: ['v1old', 'v1'] } },
      { subresource: 'status' },
    );
    const before = await crd();
    await expect(bringCrds(job, '0.2.0')).rejects.toThrow(
      `${WORKER_CLUSTERS}: objects are stored as v1old, which release 0.2.0 does not have`,
    );
    expect((await crd()).metadata.resourceVersion).toBe(before.metadata.resourceVersion);
  });

  it('has no permission for foreign CRDs', async () => {
    const other = { ...(await crd()), metadata: { name: 'others.example.org' } };
    await expect(job.get(CRDS, other.metadata.name)).rejects.toMatchObject({ status: 403 });
    await expect(job.list(CRDS)).rejects.toMatchObject({ status: 403 });
  });
});
