import { describe, expect, it } from 'vitest';
import type { HubSpec, HubTypeName } from '../../../operator/api/hub.ts';
import { foreignEntryOf, noteOwner } from '../../../operator/controllers/membership/adoption.ts';
import type { MembershipReceipt } from '../../../operator/controllers/membership/receipt.ts';
import { hubType } from '../../../operator/hubs/index.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';
import { writeKubeconfigText } from '../../../operator/pki/kubeconfig.ts';
import { member, reader } from './hub-members.ts';

const base64 = (text: string) => Buffer.from(text).toString('base64');
const object = (kind: string, name: string, namespace: string, more: Partial<KubeObject> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind,
  ...more,
  metadata: { name, uid: `uid-of-${name}`, ...(namespace && { namespace }), ...more.metadata },
});
const labelled = (one: KubeObject, labels: Record<string, string>): KubeObject => ({
  ...one,
  metadata: { ...one.metadata, labels: { ...one.metadata.labels, ...labels } },
});
const OURS = { 'multi-cluster.demo.io/membership': 'uid' };
const { server } = member().endpoint;

const cluster = (id: string, more: object = {}) =>
  object('Cluster', 'theirs', '', { spec: { id, syncMode: 'Push', ...more } });
const profile = (id: string, manager: string) =>
  object('ClusterProfile', 'theirs', 'shop', {
    spec: { clusterManager: { name: manager } },
    status: { properties: [{ name: 'id.k8s.io', value: id }] },
  });
const argoSecret = (url: string, called = 'theirs') =>
  object('Secret', 'theirs', 'argocd', { data: { name: base64(called), server: base64(url) } });
const fluxSecret = (name: string, url: string) =>
  object('Secret', name, 'shop', {
    data: { value: base64(writeKubeconfigText({ server: url, ca: 'CA', token: 't', name: 'x', user: 'x' })) },
  });
const workerSecret = (url: string) =>
  object('Secret', 'theirs-access', 'kueue-system', {
    data: { kubeconfig: base64(writeKubeconfigText({ server: url, ca: 'CA', token: 't', name: 'x', user: 'x' })) },
  });
const worker = (clusterSource: object) => object('MultiKueueCluster', 'theirs', '', { spec: { clusterSource } });
const named = worker({ kubeConfig: { locationType: 'Secret', location: 'theirs-access' } });
const reported = (apiserverURL: string) => object('ManagedCluster', 'theirs', 'fleet', { status: { apiserverURL } });
const kustomization = (secret: string) =>
  object('Kustomization', 'web', 'shop', { spec: { kubeConfig: { secretRef: { name: secret } } } });

type Case = [string, HubTypeName, Record<string, KubeObject[]>, string[] | undefined, string | undefined];
const ID = member().id;

describe('a foreign registration of a cluster', () => {
  it.each<Case>([
    ['is known in Karmada by its id', 'Karmada', { clusters: [cluster(ID)] }, ['Cluster theirs'], undefined],
    ['is no other cluster', 'Karmada', { clusters: [cluster('another')] }, undefined, undefined],
    ['is not what a garden made', 'Karmada', { clusters: [labelled(cluster(ID), OURS)] }, undefined, undefined],
    [
      'is in Karmada with the Secret that it names',
      'Karmada',
      {
        clusters: [cluster(ID, { secretRef: { namespace: 'karmada-cluster', name: 'theirs' } })],
        secrets: [object('Secret', 'theirs', 'karmada-cluster')],
      },
      ['Cluster theirs', 'Secret karmada-cluster/theirs'],
      undefined,
    ],
    [
      'is in Karmada without a Secret that ours would not replace',
      'Karmada',
      {
        clusters: [cluster(ID, { secretRef: { namespace: 'default', name: 'root' } })],
        secrets: [object('Secret', 'root', 'default')],
      },
      ['Cluster theirs'],
      undefined,
    ],
    [
      'cannot be taken from its agent in Karmada',
      'Karmada',
      { clusters: [cluster(ID, { syncMode: 'Pull' })] },
      ['Cluster theirs'],
      "has an agent of somebody else's",
    ],
    [
      'is known in Open Cluster Management by a claim, and cannot be taken from its agent',
      'OpenClusterManagement',
      {
        managedclusters: [
          object('ManagedCluster', 'other', '', {
            status: { clusterClaims: [{ name: 'id.k8s.io', value: 'another' }] },
          }),
          object('ManagedCluster', 'theirs', '', { status: { clusterClaims: [{ name: 'id.k8s.io', value: ID }] } }),
        ],
      },
      ['ManagedCluster theirs'],
      "has an agent of somebody else's",
    ],
    [
      'is known in an inventory by a property',
      'ClusterProfile',
      { clusterprofiles: [profile(ID, 'coppice')] },
      ['ClusterProfile shop/theirs'],
      undefined,
    ],
    [
      'cannot be taken from another manager of an inventory',
      'ClusterProfile',
      { clusterprofiles: [profile(ID, 'ocm')] },
      ['ClusterProfile shop/theirs'],
      'of cluster manager ocm, which cannot be changed',
    ],
    [
      'is known in Argo CD by its URL',
      'ArgoCD',
      { secrets: [argoSecret(`${server}/`)] },
      ['Secret argocd/theirs'],
      undefined,
    ],
    [
      'cannot be taken over in Argo CD where Applications may name it otherwise',
      'ArgoCD',
      { secrets: [argoSecret(server, 'production')] },
      ['Secret argocd/theirs'],
      'calls the cluster production',
    ],
    [
      'is known in Flux by its URL, where our Secret would be',
      'Flux',
      { secrets: [fluxSecret('shop--demo-kubeconfig', server)] },
      ['Secret shop/shop--demo-kubeconfig'],
      undefined,
    ],
    [
      'cannot be taken over in Flux under another name',
      'Flux',
      { secrets: [fluxSecret('own', server)], kustomizations: [kustomization('own')] },
      ['Secret shop/own'],
      'is not called shop--demo-kubeconfig',
    ],
    [
      'is known in Kueue by the URL in the Secret that it names, and cannot be taken from the lists that name it',
      'Kueue',
      { multikueueclusters: [worker({ clusterProfileRef: { name: 'x' } }), named], secrets: [workerSecret(server)] },
      ['MultiKueueCluster theirs'],
      "named by lists of somebody else's",
    ],
    [
      'is no other cluster of Kueue',
      'Kueue',
      { multikueueclusters: [named], secrets: [workerSecret('https://other:6443')] },
      undefined,
      undefined,
    ],
    [
      'is known in Clusternet by the URL that its agent reports, and cannot be taken from it',
      'Clusternet',
      { managedclusters: [reported('https://other:6443'), reported(server)] },
      ['ManagedCluster fleet/theirs'],
      "has an agent of somebody else's",
    ],
    [
      'is not a cluster of Clusternet that a garden made',
      'Clusternet',
      { managedclusters: [labelled(reported(server), OURS)] },
      undefined,
      undefined,
    ],
    ['is no Secret that Flux does not use', 'Flux', { secrets: [fluxSecret('own', server)] }, undefined, undefined],
    [
      'is not the kubeconfig that this operator hands out',
      'Flux',
      {
        secrets: [labelled(fluxSecret('demo-kubeconfig', server), { 'app.kubernetes.io/managed-by': 'coppice' })],
        kustomizations: [kustomization('demo-kubeconfig')],
      },
      undefined,
      undefined,
    ],
  ])('%s', async (_, type, objects, places, whyNot) => {
    const found = await hubType(type)!.foreignEntry!(reader(objects), member(), { type });
    const said = found?.places.map(
      ({ resource, namespace, name }) => `${resource.kind} ${namespace ? `${namespace}/` : ''}${name}`,
    );
    expect(said).toEqual(places);
    expect(found?.whyNot ?? '').toContain(whyNot ?? '');
    expect(found?.whyNot === undefined).toBe(whyNot === undefined);
  });
});

describe('the adoption of a foreign registration', () => {
  const receipt: MembershipReceipt = {
    membership: { namespace: 'shop', name: 'demo.fleet', uid: 'uid' },
    cluster: 'demo',
    hub: { name: 'fleet', identity: 'hub', spec: { type: 'Karmada' } },
    member: { name: 'shop--demo', id: ID, endpoint: { server } },
    places: [],
    credentials: [],
  };
  const hub = reader({ clusters: [cluster(ID)] });
  const look = (adoption: HubSpec['adoption'], more: Partial<MembershipReceipt> = {}) =>
    foreignEntryOf(hubType('Karmada')!, hub, {
      member: () => member(),
      spec: { type: 'Karmada', ...(adoption && { adoption }) },
      receipt: { ...receipt, ...more },
    });

  it('requires consent, and does not apply to a cluster that joined through Coppice', async () => {
    expect(await look(undefined)).toBeUndefined();
    expect(await look('Own', { opened: true })).toBeUndefined();
    expect((await look('Own'))?.name).toBe('theirs');
  });

  it('is recorded first, by UID, and keeps the name in the hub', async () => {
    const next = noteOwner(receipt, (await look('Own'))!);
    expect(next.member.name).toBe('theirs');
    expect(next.places).toMatchObject([{ on: 'hub', name: 'theirs' }]);
    expect(next.takingOver).toMatchObject([{ name: 'theirs', uid: 'uid-of-theirs' }]);
  });

  it('does not begin where it is impossible', () => {
    expect(() => noteOwner(receipt, { name: 'theirs', places: [], whyNot: 'Cluster theirs has an agent' })).toThrow(
      'Cluster theirs has an agent, so this cluster cannot be taken over in the hub',
    );
  });
});
