import { describe, expect, it } from 'vitest';
import type { HubSpec } from '../../../operator/api/hub.ts';
import type { Member } from '../../../operator/hubs/contract.ts';
import { kindsWritten } from '../../../operator/hubs/index.ts';
import type { KarmadaCluster } from '../../../operator/hubs/karmada/cluster.ts';
import { karmadaHub } from '../../../operator/hubs/karmada/karmada.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';
import { member as memberOf, reader, textOf } from './hub-members.ts';

const image = 'registry.example.com/karmada-agent:v1.19.0';
const spec: HubSpec = { type: 'Karmada', karmada: { syncMode: 'Pull' }, member: { agentImage: image } };
const member = memberOf({ credentials: { agent: { token: 'token-in-the-hub' } } });

const cluster = (ready: 'True' | 'Unknown', metadata: object = {}): KarmadaCluster => ({
  apiVersion: 'cluster.karmada.io/v1alpha1',
  kind: 'Cluster',
  metadata: { name: 'shop--demo', labels: { 'multi-cluster.demo.io/membership': 'uid' }, ...metadata },
  spec: { id: member.id },
  status: { conditions: [{ type: 'Ready', status: ready }] },
});
const object = (kind: string, name: string, more: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind,
  metadata: { name, ...more },
});
const namespace = object('Namespace', 'karmada-es-shop--demo');
const seenOf = (objects: Parameters<typeof reader>[0], one: Member = member) =>
  karmadaHub.observe(reader({ namespaces: [namespace], ...objects }), undefined, one, spec);
const wanted = async (objects: Parameters<typeof reader>[0]) =>
  karmadaHub.join(member, spec, await seenOf(objects)).flatMap(({ apply = [] }) => apply);
const kindsIn = (side: 'hub' | 'member', all: Awaited<ReturnType<typeof wanted>>) =>
  all.filter(({ on }) => on === side).map(({ object: { kind } }) => kind);

describe("a cluster in Karmada's pull mode", () => {
  it('opens connections to the hub itself, and gives the hub no access', () => {
    expect(karmadaHub.dials(spec)).toBe('MemberToHub');
    expect(karmadaHub.dials({ type: 'Karmada' })).toBe('HubToMember');
    expect(karmadaHub.identities(member, spec).map(({ on, life }) => [on, life])).toEqual([['hub', 86400]]);
  });

  it('lacks the hub rights that only its registration needed', () => {
    const { rules } = karmadaHub.identities(member, spec)[0]!;
    const may = (verb: string, resource: string) =>
      rules.filter(({ resources, verbs }) => resources?.includes(resource) && verbs.includes(verb));
    for (const [verb, resource] of [
      ['create', 'clusters'],
      ['update', 'clusters'],
      ['delete', 'clusters'],
      ['get', 'secrets'],
      ['create', 'secrets'],
      ['create', 'certificatesigningrequests'],
      ['update', 'leases'],
      ['list', 'works'],
    ])
      expect(may(verb!, resource!), `${verb} ${resource}`).toEqual([]);
    expect(may('update', 'clusters/status').map(({ resourceNames }) => resourceNames)).toEqual([['shop--demo']]);
    expect(rules.some(({ verbs, resources }) => verbs.includes('*') || resources?.includes('*'))).toBe(false);
  });

  it("gets its agent once the Cluster is Coppice's and the Works namespace exists", async () => {
    const agents = async (objects: Parameters<typeof reader>[0]) =>
      kindsIn('member', await wanted(objects)).filter((kind) => kind === 'Deployment').length;
    expect(await agents({ clusters: [] })).toBe(0);
    expect(await agents({ clusters: [cluster('True', { labels: {} })] })).toBe(0);
    expect(await agents({ clusters: [cluster('True')], namespaces: [] })).toBe(0);
    const going = { ...namespace, metadata: { ...namespace.metadata, deletionTimestamp: '2026-11-22T12:00:00Z' } };
    expect(await agents({ clusters: [cluster('True')], namespaces: [going] })).toBe(0);
    expect(await agents({ clusters: [cluster('True')] })).toBe(1);
  });

  it('has an agent that registers nothing, and reads a renewable token file', async () => {
    const all = await wanted({ clusters: [cluster('Unknown')] });
    const secret = all.find(({ resource, on }) => resource.kind === 'Secret' && on === 'member');
    expect(textOf(secret, 'token')).toBe('token-in-the-hub');
    expect(textOf(secret, 'kubeconfig')).toContain('tokenFile: /etc/karmada/token');
    expect(textOf(secret, 'kubeconfig')).toContain('https://hub.example.com');
    expect(textOf(secret, 'kubeconfig')).not.toContain('token-in-the-hub');
    const deployment = all.find(({ resource }) => resource.kind === 'Deployment')!;
    const [container] = (
      deployment.object.spec as { template: { spec: { containers: { image: string; command: string[] }[] } } }
    ).template.spec.containers;
    expect(container!.image).toBe(image);
    expect(container!.command).toEqual(
      expect.arrayContaining([
        '--report-secrets=None',
        '--cluster-name=shop--demo',
        '--cluster-api-endpoint=https://demo.example.com:6443',
      ]),
    );
    // As the agent would write it, who may not.
    const registered = all.find(({ resource }) => resource.kind === 'Cluster')!;
    expect(registered.object.spec).toMatchObject({ syncMode: 'Pull', apiEndpoint: 'https://demo.example.com:6443' });
    expect(registered.object.spec).not.toHaveProperty('secretRef');
    expect(kindsIn('hub', all)).not.toContain('Secret');
  });

  it('adopts no Cluster in push mode, since both would apply', async () => {
    const whyNot = async (syncMode: string) => {
      const theirs = { ...cluster('True', { labels: {} }), spec: { id: member.id, syncMode } };
      return (await karmadaHub.foreignEntry!(reader({ clusters: [theirs] }), member, spec))?.whyNot;
    };
    expect(await whyNot('Push')).toContain('is of syncMode Push');
    expect(await whyNot('Pull')).toContain("an agent of somebody else's");
  });

  it('writes no kind that the audit does not search', async () => {
    const all = (await wanted({ clusters: [cluster('True')] })).filter(({ shared }) => !shared);
    const isLookedFor = (on: 'hub' | 'member', { plural }: { plural: string }) =>
      kindsWritten(on).some((kind) => kind.plural === plural);
    expect(all.filter(({ on, resource }) => !isLookedFor(on, resource))).toEqual([]);
  });

  describe('whose Cluster is deleted by a person', () => {
    const deletionTimestamp = '2026-11-22T12:00:00Z';
    const within = 'karmada-es-shop--demo';
    const identifier = {
      group: 'apps',
      version: 'v1',
      resource: 'deployments',
      kind: 'Deployment',
      namespace: 'shop',
      name: 'web',
    };
    const work = (metadata: object = {}, spec: object = {}, manifestStatuses: object[] = [{ identifier }]) => ({
      ...object('Work', 'web', {
        namespace: within,
        uid: 'uid-of-work',
        deletionTimestamp,
        finalizers: ['theirs', 'karmada.io/execution-controller'],
        ...metadata,
      }),
      spec: { workload: { manifests: [{ kind: 'Deployment' }] }, ...spec },
      status: { manifestStatuses },
    });
    const web = object('Deployment', 'web', { namespace: 'shop' });
    const right = object('RoleBinding', 'coppice-agent-shop--demo', { namespace: within });
    const released = async (
      {
        works = [work()],
        rolebindings = [],
        inside = [],
        live = cluster('True', { deletionTimestamp, labels: { 'multi-cluster.demo.io/membership': 'uid' } }),
      }: {
        works?: KubeObject[];
        rolebindings?: KubeObject[];
        inside?: KubeObject[];
        live?: KarmadaCluster;
      } = {},
      one: Member = member,
    ) => {
      const hub = {
        clusters: [live],
        namespaces: [namespace],
        works,
        rolebindings,
        resourcebindings: [],
        clusterresourcebindings: [],
      };
      const seen = await karmadaHub.observe(reader(hub), reader({ deployments: inside }), one, spec);
      return karmadaHub.release!(one, spec, seen);
    };

    it('removes finalizers of Works that the agent deleted without the right to report it', async () => {
      expect(await released()).toMatchObject([
        {
          on: 'hub',
          namespace: within,
          name: 'web',
          uid: 'uid-of-work',
          patch: { metadata: { finalizers: ['theirs'] } },
        },
      ]);
    });

    it.each<[string, Parameters<typeof released>[0], Member?]>([
      ['the agent has its right still', { rolebindings: [right] }],
      ['something of it is in the member', { inside: [web] }],
      ['it is not on its way out', { works: [work({ deletionTimestamp: undefined })] }],
      ['somebody else holds it', { works: [work({ finalizers: ['theirs'] })] }],
      ['what it made is to stay', { works: [work({}, { preserveResourcesOnDeletion: true })] }],
      ['Karmada does not tell what it made', { works: [work({}, {}, [])] }],
      ['nobody deletes the Cluster', { live: cluster('True') }],
      ['the cluster leaves, which takes Works away first', {}, { ...member, closed: 'Leaving' }],
    ])('keeps its hands off a Work where %s', async (_, objects, one) =>
      expect(await released(objects, one)).toEqual([]),
    );

    it('reports what it waits for', async () => {
      const live = cluster('True', { deletionTimestamp, labels: { 'multi-cluster.demo.io/membership': 'uid' } });
      const steps = karmadaHub.join(member, spec, await seenOf({ clusters: [live] }));
      expect(steps.find(({ type }) => type === 'Registered')?.waiting).toContain('somebody deletes Cluster shop--demo');
    });
  });

  it('leaves with its Works first, while its agent can delete their objects; for a dead cluster Karmada removes them', async () => {
    const works = [
      object('Work', 'web', { namespace: 'karmada-es-shop--demo', labels: { 'work.karmada.io/permanent-id': 'one' } }),
    ];
    const removals = async (live: KarmadaCluster) => {
      const one: Member = { ...member, closed: 'Leaving' };
      const seen = await seenOf({ clusters: [live], works, resourcebindings: [], clusterresourcebindings: [] }, one);
      return karmadaHub
        .leave(one, spec, seen)
        .map(({ places }) => places.map(({ resource, name }) => `${resource.kind} ${name}`));
    };
    expect(await removals(cluster('True'))).toEqual([['Work web'], ['Cluster shop--demo']]);
    expect(await removals(cluster('Unknown'))).toEqual([[], ['Cluster shop--demo']]);
  });
});
