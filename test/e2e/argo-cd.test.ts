import { readFileSync } from 'node:fs';
import { beforeAll, expect, it } from 'vitest';
import { findCondition, isTrue } from '../../operator/api/conditions.ts';
import { ALPHA_API_VERSION, LABELS } from '../../operator/api/group.ts';
import type { HubSpec } from '../../operator/api/hub.ts';
import type { Membership } from '../../operator/api/membership.ts';
import { COMPONENTS, membershipName } from '../../operator/api/names.ts';
import { APPLICATIONS } from '../../operator/hubs/argo-cd.ts';
import { memberName } from '../../operator/hubs/member-name.ts';
import {
  CONFIGMAPS,
  DEPLOYMENTS,
  HUBS,
  type KubeObject,
  MEMBERSHIPS,
  PODS,
  RESOURCEQUOTAS,
  SECRETS,
  SERVICEACCOUNTS,
  WORKERCLUSTERS,
} from '../../operator/kube/resources.ts';
import {
  clusterClient,
  deleteCluster,
  e2e,
  endAll,
  follow,
  garden,
  gardenClient,
  makeCluster,
  type Name,
  seedNamespace,
  seedPods,
  until,
} from '../kit/garden.ts';
import { APPLICATIONSETS, RealArgoCD } from '../kit/hubs/real-argo-cd.ts';
import { echo } from '../kit/workload.ts';

const HUB = 'argo';
const FLEET = { fleet: 'argo' };
/** For what takes seconds: a file that has failed is to have time to tidy up. */
const SOON_MS = 60_000;
const FORCED = { timeout: '1s', force: true, allowDelete: true };

e2e('the real Argo CD', () => {
  let argo: RealArgoCD;
  /** One with a node that leaves, and one without that dies. */
  let lives: Name;
  let dies: Name;
  const client = () => gardenClient();
  const inHub = ({ namespace, name }: Name) => memberName(namespace, name, 48);
  const application = async (cluster: Name) =>
    (await client().getOrUndefined(APPLICATIONS, `${inHub(cluster)}-web`, 'argocd')) as KubeObject | undefined;
  const secret = (cluster: Name) => client().getOrUndefined(SECRETS, inHub(cluster), 'argocd');
  const makeHub = (drain: HubSpec['drain']) =>
    client().apply({
      apiVersion: ALPHA_API_VERSION,
      kind: 'Hub',
      metadata: { name: HUB },
      spec: {
        type: 'ArgoCD',
        allowedNamespaces: ['default'],
        clusterSelector: { matchLabels: FLEET },
        argoCD: { rights: 'Workloads' },
        drain,
      },
    });
  const untilMembership = async <R>(
    { namespace, name }: Name,
    is: (found?: Membership) => R | undefined | false,
    what: string,
  ) => {
    const all = await follow<Membership>(client(), MEMBERSHIPS);
    const key = `${namespace}/${membershipName(name, HUB)}`;
    return all.waitFor(() => is(all.get(key)), {
      timeoutMs: SOON_MS,
      what: () => `Membership ${key} ${what}; its status is ${JSON.stringify(all.get(key)?.status)}`,
    });
  };
  const untilApplication = async (cluster: Name, is: (status: any) => boolean, what: string) => {
    const all = await follow(client(), APPLICATIONS, { namespace: 'argocd' });
    const key = `argocd/${inHub(cluster)}-web`;
    await all.waitFor(() => is(all.get(key)?.status) || undefined, {
      timeoutMs: SOON_MS,
      what: () => `Application ${key} ${what}: ${JSON.stringify(all.get(key)?.status)}; ${argo.state}`,
    });
  };

  beforeAll(async () => {
    const ends: (() => Promise<unknown>)[] = [];
    const config = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'web' }, data: { from: 'git' } };
    argo = await RealArgoCD.start(client(), readFileSync(garden.kubeconfig, 'utf8'), {
      'web/config.json': JSON.stringify(config),
      'web/deployment.json': JSON.stringify(echo({ name: 'web' })),
    });
    ends.push(() => argo.stop());
    await makeHub({ allowDelete: true });
    ends.push(() => client().delete(HUBS, HUB));
    await client().apply(clusterApplications(argo.repository), { resource: APPLICATIONSETS });
    [lives, dies] = await Promise.all([makeCluster({ dataPlaneNodes: 1 }), makeCluster()]);
    for (const { namespace, name } of [lives, dies])
      await client().mergePatch(WORKERCLUSTERS, name, namespace, { metadata: { labels: FLEET } });
    ends.push(async () => {
      // One that a failed test has left dead would stay for ever.
      await makeHub(FORCED);
      await Promise.all([lives, dies].map((cluster) => deleteCluster(cluster)));
    });
    return () => endAll(ends);
  });

  it('gets an Application for each cluster that joins, and syncs it', async () => {
    const figures = await Promise.all(
      [lives, dies].map(async (cluster) => {
        await until(cluster, (found) => isTrue(found?.status?.conditions, 'Ready'), 'to be Ready');
        const ready = Date.now();
        await untilMembership(cluster, (found) => found?.status?.state === 'Joined', 'to have joined');
        const joined = Date.now();
        await untilApplication(cluster, (status) => status?.sync?.status === 'Synced', 'to be synced');
        return { readyToJoined: joined - ready, joinedToSynced: Date.now() - joined };
      }),
    );
    console.log(`argo: ${JSON.stringify(figures)} ms`);
    await untilApplication(lives, (status) => status?.health?.status === 'Healthy', 'to be healthy');
    for (const cluster of [lives, dies]) {
      const found = await (await clusterClient(cluster)).get(CONFIGMAPS, 'web', 'default');
      expect(found.data).toEqual({ from: 'git' });
    }
    // The template was given what the cluster offers.
    expect((await application(lives))?.metadata.annotations?.cpu).toMatch(/^\d+m?$/);
  });

  it('deletes what it deployed to a cluster that leaves and lives on', async () => {
    const inside = await clusterClient(lives);
    const began = Date.now();
    await client().mergePatch(WORKERCLUSTERS, lives.name, lives.namespace, { metadata: { labels: { fleet: null } } });
    await untilMembership(lives, (found) => found === undefined, 'to be gone');
    console.log(`argo: left after ${Date.now() - began} ms`);
    expect(await application(lives)).toBeUndefined();
    expect(await secret(lives)).toBeUndefined();
    for (const resource of [CONFIGMAPS, DEPLOYMENTS])
      expect(await inside.getOrUndefined(resource, 'web', 'default')).toBeUndefined();
    expect(await inside.getOrUndefined(SERVICEACCOUNTS, `coppice-hub-${HUB}`, 'kube-system')).toBeUndefined();
    expect((await application(dies))?.status?.sync?.status).toBe('Synced');
  });

  it('gets an Application again for a cluster that returns, and none after its deletion', async () => {
    const { name, namespace } = lives;
    await client().mergePatch(WORKERCLUSTERS, name, namespace, { metadata: { labels: FLEET } });
    await untilMembership(lives, (found) => found?.status?.state === 'Joined', 'to have joined');
    await untilApplication(lives, (status) => status?.sync?.status === 'Synced', 'to be synced');
    await deleteCluster(lives);
    expect(await application(lives)).toBeUndefined();
    expect(await secret(lives)).toBeUndefined();
  });

  it('releases a cluster with a dead control plane by force, and keeps no Application', async () => {
    // No pod of the control plane comes back.
    const namespace = seedNamespace(dies);
    const quota = {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'dead', namespace },
      spec: { hard: { pods: '0' } },
    };
    await client().apply(quota);
    const killed = async () => {
      const left = (await seedPods(dies)).filter(({ metadata }) => metadata.labels?.app === COMPONENTS.apiServer);
      for (const { metadata } of left) await client().delete(PODS, metadata.name, namespace, { gracePeriodSeconds: 0 });
      return left;
    };
    await expect.poll(killed, { timeout: SOON_MS, interval: 1000 }).toEqual([]);
    await until(
      dies,
      (found) => findCondition(found?.status?.conditions, 'APIServerAvailable')?.status === 'False',
      'to be dead',
      SOON_MS,
    );
    // Its labels go, and its Application with them, which Argo CD cannot end while the cluster does not answer.
    await deleteCluster(dies, { wait: false });
    await untilMembership(
      dies,
      (found) => found?.status?.waiting?.includes(`Application argocd/${inHub(dies)}-web is still to be deleted`),
      'to wait for it',
    );
    await expect.poll(async () => (await application(dies))?.metadata.deletionTimestamp).toBeDefined();
    await makeHub(FORCED);
    const began = Date.now();
    await untilMembership(dies, (found) => found === undefined, 'to be gone');
    console.log(`argo: left by force ${Date.now() - began} ms after it was allowed`);
    expect(await secret(dies)).toBeUndefined();
    await expect.poll(() => application(dies), { timeout: SOON_MS }).toBeUndefined();
    console.log(`argo: its Application was gone after ${Date.now() - began} ms`);
    await client().delete(RESOURCEQUOTAS, 'dead', namespace);
    await until(dies, (found) => found === undefined, 'to be gone');
  });
});

/** An Application for each cluster that is local and of our fleet, by the labels that we give. */
const clusterApplications = (repoURL: string): KubeObject => ({
  apiVersion: 'argoproj.io/v1alpha1',
  kind: 'ApplicationSet',
  metadata: { name: 'web', namespace: 'argocd' },
  spec: {
    goTemplate: true,
    generators: [{ clusters: { selector: { matchLabels: { [LABELS.provider]: 'local', ...FLEET } } } }],
    template: {
      metadata: {
        name: '{{.name}}-web',
        annotations: { cpu: '{{index .metadata.annotations "multi-cluster.demo.io/capacity.cpu"}}' },
      },
      spec: {
        project: 'default',
        source: { repoURL, path: 'web', targetRevision: 'main' },
        destination: { name: '{{.name}}', namespace: 'default' },
        syncPolicy: { automated: { prune: true } },
      },
    },
  },
});
