import { X509Certificate } from 'node:crypto';
import { dump, load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../operator/api/meta.ts';
import { IMAGES } from '../../../operator/garden/images/catalog.ts';
import { exposedEndpointOf } from '../../../operator/shoot/exposure.ts';
import { konnectivityAgent } from '../../../operator/shoot/konnectivity-agent.ts';
import { serviceManifests } from '../../../operator/shoot/services.ts';
import { konnectivityImage } from '../../../operator/shoot/versions.ts';
import { controlPlane, controlPlaneObjects, pkiOf } from './values.ts';

const outside = (members = 1) => ({
  ...controlPlane(members),
  exposure: 'LoadBalancer' as const,
  endpoint: { host: '203.0.113.10', port: 6443 },
  machinesOutside: true,
});
const one = outside();
const pki = await pkiOf(one);
const named = (objects: KubeObject[], kind: string, name: string) =>
  objects.find((object) => object.kind === kind && object.metadata.name === name)!;
const apiServer = (values = one, keys = pki) =>
  named(controlPlaneObjects(values, keys), 'Deployment', 'kube-apiserver');
const fileOf = (secret: KubeObject, name: string) => Buffer.from(secret.data[name], 'base64').toString();

describe('a control plane with machines outside the seed', () => {
  const objects = controlPlaneObjects(one, pki);

  it('has a tunnel server beside its API server', async () => {
    await expect(dump(apiServer().spec.template.spec.containers[1])).toMatchFileSnapshot(
      'golden/konnectivity-server.yaml',
    );
    const selector = load(fileOf(named(objects, 'Secret', 'kube-apiserver'), 'egress-selector.json')) as any;
    expect(selector.egressSelections.map(({ name }: { name: string }) => name)).toEqual(['cluster', 'controlplane']);
    const { udsName } = selector.egressSelections[0].connection.transport.uds;
    const [api, tunnel] = apiServer().spec.template.spec.containers;
    expect(tunnel.args).toContain(`--uds-name=${udsName}`);
    expect(api.args).toContain('--egress-selector-config-file=/etc/kubernetes/egress-selector.json');
    for (const { volumeMounts } of [api, tunnel])
      expect(volumeMounts.map(({ name }: { name: string }) => name)).toContain('konnectivity');
  });

  it("keeps the API server's keys from the tunnel server", () => {
    const { containers, volumes } = apiServer().spec.template.spec;
    const mounted = containers[1].volumeMounts.map(({ name }: { name: string }) =>
      volumes.find((volume: { name: string }) => volume.name === name),
    );
    expect(mounted.map(({ secret }: any) => secret?.secretName)).toEqual(['konnectivity-server', undefined]);
    expect(Object.keys(named(objects, 'Secret', 'konnectivity-server').data).sort()).toEqual([
      'kubeconfig',
      'tls.crt',
      'tls.key',
    ]);
  });

  it('serves agents at its address, and may only review tokens at its API server', () => {
    const secret = named(objects, 'Secret', 'konnectivity-server');
    const certificate = new X509Certificate(fileOf(secret, 'tls.crt'));
    expect(certificate.checkIP('203.0.113.10')).toBe('203.0.113.10');
    expect(certificate.subject).toBe('CN=system:konnectivity-server');
    const { clusters } = load(fileOf(secret, 'kubeconfig')) as any;
    expect(clusters[0].cluster.server).toBe('https://127.0.0.1:6443');
    const agents = konnectivityAgent(one, 1);
    expect(named(agents, 'ClusterRole', 'coppice:konnectivity-server').rules).toEqual([
      { apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'], verbs: ['create'] },
    ]);
    expect(named(agents, 'ClusterRoleBinding', 'coppice:konnectivity-server').subjects[0].name).toBe(
      'system:konnectivity-server',
    );
  });

  it('admits agents at a second port of its load balancer', () => {
    const [service] = serviceManifests(one, 1);
    expect(service!.spec.ports.map(({ port }: { port: number }) => port)).toEqual([6443, 8132]);
    const balanced = { ...service, status: { loadBalancer: { ingress: [{ ip: '203.0.113.10' }] } } };
    expect(exposedEndpointOf(balanced as any, [])).toEqual(one.endpoint);
  });

  it('is rolled when a tunnel certificate is renewed', async () => {
    const again = await pkiOf(one);
    const renewed = { ...pki };
    for (const file of ['crt', 'key']) renewed[`konnectivity-server.${file}`] = again[`konnectivity-server.${file}`]!;
    const { template } = apiServer().spec;
    expect(apiServer(one, renewed).spec.template.metadata.annotations).not.toEqual(template.metadata.annotations);
  });

  it('tells agents the number of API servers in the roll in which these know all etcd members', async () => {
    const three = outside(3);
    const keys = await pkiOf(three);
    const growing = { ...three, etcd: { ...three.etcd, replicas: 1, endpoints: [0] } };
    expect(apiServer(three, keys).spec.template.spec.containers[1].args).toContain('--server-count=3');
    const template = (values: typeof three) => ({ ...apiServer(values, keys).spec.template.spec, affinity: undefined });
    expect(template(growing)).toEqual(template({ ...growing, replicas: 1 }));
  });
});

it('a control plane that reaches its machines directly has no tunnel', async () => {
  const values = controlPlane();
  const keys = await pkiOf(values);
  expect(
    JSON.stringify([controlPlaneObjects(values, keys), serviceManifests(values, 1), Object.keys(keys)]),
  ).not.toMatch(/konnectivity|egress/);
});

describe("the tunnel's agents", () => {
  it("have the server's address, and a token for it alone", async () => {
    await expect(dump(konnectivityAgent(one, 2), { noRefs: true })).toMatchFileSnapshot(
      'golden/konnectivity-agent.yaml',
    );
  });

  it('restart when the number of API servers changes, and for nothing else', () => {
    const template = (values: typeof one, replicas = 2) =>
      named(konnectivityAgent(values, replicas), 'Deployment', 'konnectivity-agent').spec.template;
    const growing = { ...outside(3), etcd: { ...outside(3).etcd, replicas: 2, endpoints: [0] } };
    expect(template(growing)).toEqual(template(one));
    expect(template(outside(3))).not.toEqual(template(one));
  });

  it('use an image name that the embedded garden builds', () => {
    for (const end of ['proxy-server', 'proxy-agent'] as const) expect(konnectivityImage(end)).toBe(IMAGES[end].ref);
  });
});
