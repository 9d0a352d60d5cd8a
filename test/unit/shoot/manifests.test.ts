import { X509Certificate } from 'node:crypto';
import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../operator/api/meta.ts';
import { CONTROL_PLANE_PRIORITY } from '../../../operator/api/names.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import { bootstrapTokenSecret, newBootstrapToken, tokenText } from '../../../operator/shoot/bootstrap-token.ts';
import { etcdConfig, etcdSecret, notedVolumes } from '../../../operator/shoot/etcd.ts';
import { nodeMaskSize } from '../../../operator/shoot/kube-controller-manager.ts';
import { adminKubeconfig, bootstrapKubeconfig } from '../../../operator/shoot/kubeconfigs.ts';
import { namespaceManifest } from '../../../operator/shoot/namespace.ts';
import { pkiSecret } from '../../../operator/shoot/pki-secret.ts';
import { isUsable } from '../../../operator/shoot/readiness.ts';
import { serviceManifests } from '../../../operator/shoot/services.ts';
import { controlPlane, controlPlaneObjects, NOW, pkiOf, systemComponents } from './values.ts';

type UsableClient = Parameters<typeof isUsable>[0];

const one = controlPlane();
const three = controlPlane(3);
const pki = await pkiOf(one);
const pkiOfThree = await pkiOf(three);
const named = (objects: KubeObject[], kind: string, name: string) =>
  objects.find((object) => object.kind === kind && object.metadata.name === name)!;
const podOf = (object: KubeObject) => object.spec.template.spec;

describe('the pods of a control plane', () => {
  it.each([
    ['the priority of control planes where the seed has it', CONTROL_PLANE_PRIORITY],
    ['no priority where the seed has none for them', undefined],
  ])('have %s', (_what, priorityClassName) => {
    const objects = controlPlaneObjects({ ...one, ...(priorityClassName && { priorityClassName }) }, pki);
    const pods = objects.filter(({ kind }) => kind !== 'Secret').map(podOf);
    expect(pods.map((pod) => pod.priorityClassName)).toEqual(Array(4).fill(priorityClassName));
  });
});

describe('a control plane with one replica', () => {
  const objects = controlPlaneObjects(one, pki);

  it('has few objects', () => {
    expect(objects.map((object) => `${object.kind} ${object.metadata.name}`)).toEqual([
      'Secret etcd-main',
      'StatefulSet etcd-main',
      'Secret kube-apiserver',
      'Deployment kube-apiserver',
      'Secret kube-controller-manager',
      'Deployment kube-controller-manager',
      'Secret kube-scheduler',
      'Deployment kube-scheduler',
    ]);
    const all = [
      namespaceManifest(one, 'restricted'),
      ...serviceManifests(one, 1),
      pkiSecret(one, pki),
      ...objects,
      ...systemComponents(one, 1),
    ];
    expect(all.length).toBeLessThan(28);
  });

  it('runs every pod as nobody, without privileges or a token', () => {
    for (const object of objects.filter((item) => item.kind !== 'Secret')) {
      const pod = podOf(object);
      expect(pod.automountServiceAccountToken).toBe(false);
      expect(pod.securityContext).toMatchObject({
        runAsNonRoot: true,
        runAsUser: 65532,
        seccompProfile: { type: 'RuntimeDefault' },
      });
      expect(pod.containers[0].securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      expect(pod.containers[0].startupProbe.periodSeconds).toBe(1);
      expect(pod.terminationGracePeriodSeconds).toBeLessThanOrEqual(10);
    }
  });

  it("has no leader election, and answers before the kubelet's probe", () => {
    for (const name of ['kube-controller-manager', 'kube-scheduler']) {
      expect(podOf(named(objects, 'Deployment', name)).containers[0].args).toContain('--leader-elect=false');
    }
    expect(serviceManifests(one, 1)[0]!.spec.publishNotReadyAddresses).toBe(true);
  });

  // Each of its 40 controllers asks for an account, twice, and for a token; none works before all have the first of these.
  it('has a controller manager that signs certificates at once, not after five seconds of throttled requests', () => {
    const { args } = podOf(named(objects, 'Deployment', 'kube-controller-manager')).containers[0];
    const burst = args.find((arg: string) => arg.startsWith('--kube-api-burst='));
    expect(Number(burst?.split('=')[1])).toBeGreaterThanOrEqual(200);
  });

  it('signs kubelet certificates for 60 days instead of a year', () => {
    const { args } = podOf(named(objects, 'Deployment', 'kube-controller-manager')).containers[0];
    expect(args).toContain('--cluster-signing-duration=1440h');
  });

  it('is deterministic', () => expect(controlPlaneObjects(one, pki)).toEqual(objects));

  it('rolls components with a changed certificate, and no others', async () => {
    const renewed = { ...pki, 'kube-scheduler.crt': pki['admin.crt']!, 'etcd.crt': pki['etcd-client.crt']! };
    const rolled = controlPlaneObjects(one, renewed)
      .filter((object, index) => {
        const template = JSON.stringify(object.spec?.template);
        return template !== JSON.stringify(objects[index]!.spec?.template);
      })
      .map((object) => object.metadata.name);
    expect(rolled).toEqual(['kube-scheduler']);
  });
});

describe('a control plane with three replicas', () => {
  const objects = controlPlaneObjects(three, pkiOfThree);

  it('spreads, elects leaders, and limits disruption', () => {
    expect(named(objects, 'StatefulSet', 'etcd-main').spec.replicas).toBe(3);
    expect(named(objects, 'StatefulSet', 'etcd-main').spec.podManagementPolicy).toBe('Parallel');
    expect(named(objects, 'Deployment', 'kube-apiserver').spec.replicas).toBe(3);
    expect(named(objects, 'Deployment', 'kube-scheduler').spec.replicas).toBe(2);
    expect(podOf(named(objects, 'Deployment', 'kube-scheduler')).containers[0].args).toContain('--leader-elect=true');
    expect(objects.filter((object) => object.kind === 'PodDisruptionBudget')).toHaveLength(2);
    expect(podOf(named(objects, 'StatefulSet', 'etcd-main')).affinity.podAntiAffinity).toBeDefined();
    expect(serviceManifests(three, 3)[0]!.spec.publishNotReadyAddresses).toBe(false);
  });

  it('makes API servers use all members', () => {
    const { args } = podOf(named(objects, 'Deployment', 'kube-apiserver')).containers[0];
    expect(args).toContain('--etcd-servers=https://10.1.0.20:2379,https://10.1.0.21:2379,https://10.1.0.22:2379');
  });
});

describe('etcdConfig', () => {
  const cluster = (replicas: number, initialised: boolean, ordinal: number, volumes?: Record<number, string>) => {
    const etcd = { ...three.etcd, replicas, initialised, ...(volumes && { volumes }) };
    const config = etcdConfig({ ...three, etcd }, ordinal);
    const names = String(config['initial-cluster'])
      .split(',')
      .map((entry) => entry.split('=')[0]!.at(-1));
    return `${config['initial-cluster-state']} ${names.join('')}`;
  };
  it.each([
    [1, false, 0, 'new 0'],
    [3, false, 2, 'new 012'],
    [1, true, 1, 'existing 01'],
    [2, true, 1, 'existing 01'],
    [2, true, 2, 'existing 012'],
    [3, true, 1, 'existing 012'],
  ])('%i replicas, initialised %s, member %i: %s', (replicas, initialised, ordinal, expected) => {
    expect(cluster(replicas, initialised, ordinal)).toBe(expected);
  });
  it.each<[string, string, number, number[]]>([
    ['one that had data is told of the others only, and does not start without', 'existing 02', 1, [0, 1, 2]],
    ['one that joins, of those that are in, whatever their numbers', 'existing 012', 1, [0, 2]],
    ['the next of a cluster that grows', 'existing 01', 1, [0]],
    ['the only one', 'existing 0', 0, [0]],
  ])('%s: %s', (_, expected, ordinal, noted) => {
    const volumes = Object.fromEntries(noted.map((one) => [one, `uid${one}`]));
    expect(cluster(3, true, ordinal, volumes)).toBe(expected);
    const secret = etcdSecret({ ...three, etcd: { ...three.etcd, initialised: true, volumes } }, pki);
    expect(notedVolumes(secret)).toEqual(volumes);
    expect(notedVolumes(etcdSecret(three, pki))).toEqual({});
  });
  it('has its gateway on a separate port of its Service', () => {
    const port = 2382;
    expect(etcdConfig(one, 0)['listen-client-http-urls']).toBe(`https://0.0.0.0:${port}`);
    const ports = serviceManifests(one, 1).flatMap(({ spec }) => spec.ports.map((said: { port: number }) => said.port));
    expect(ports).toContain(port);
  });
  it('keeps fsync on', () => expect(etcdConfig(one, 0)).not.toHaveProperty('unsafe-no-fsync'));
});

describe('the system components of a shoot', () => {
  it('have DNS at the tenth address and the API server behind "kubernetes"', () => {
    const objects = systemComponents(one, 2);
    expect(named(objects, 'Service', 'kube-dns').spec.clusterIP).toBe('100.96.0.10');
    expect(named(objects, 'Endpoints', 'kubernetes').subsets[0].addresses).toEqual([{ ip: '10.1.0.10' }]);
    expect(named(objects, 'Deployment', 'coredns').spec.replicas).toBe(2);
    expect(named(objects, 'ClusterRoleBinding', 'coppice:admins').subjects[0].name).toBe('coppice:admins');
  });

  it("include bootstrap tokens in Kubernetes' format", () => {
    const token = newBootstrapToken();
    expect(tokenText(token)).toMatch(/^[a-z0-9]{6}\.[a-z0-9]{16}$/);
    const secret = bootstrapTokenSecret(token, 'worker', NOW);
    expect(secret.metadata.name).toBe(`bootstrap-token-${token.id}`);
    expect(secret.stringData).toMatchObject({ expiration: '2026-01-01T00:00:00Z' });
  });
});

it("include a kubeconfig for people with the API server's address", () => {
  const parsed = load(adminKubeconfig(one, pki)) as Record<string, any>;
  expect(parsed.clusters[0].cluster.server).toBe('https://10.1.0.10:6443');
  expect(parsed['current-context']).toBe('demo');
});

describe('the endpoint of a control plane with machines outside the seed', () => {
  const outside = { ...one, endpoint: { host: '203.0.113.10', port: 6443 }, machinesOutside: true };
  const server = (text: string) => (load(text) as Record<string, any>).clusters[0].cluster.server;

  it('is its load balancer, by a name in its certificate', async () => {
    const keys = await pkiOf(outside);
    expect(server(adminKubeconfig(outside, keys))).toBe('https://203.0.113.10:6443');
    expect(server(bootstrapKubeconfig(outside, keys, 'a.b'))).toBe('https://203.0.113.10:6443');
    expect(named(systemComponents(outside, 1), 'Endpoints', 'kubernetes').subsets[0].addresses).toEqual([
      { ip: '203.0.113.10' },
    ]);
    expect(new X509Certificate(keys['kube-apiserver.crt']!).checkIP('203.0.113.10')).toBe('203.0.113.10');
  });

  it('is its Service for pods in the seed', async () => {
    const parts = controlPlaneObjects(outside, await pkiOf(outside));
    for (const name of ['kube-controller-manager', 'kube-scheduler']) {
      const { data } = named(parts, 'Secret', name);
      expect(server(Buffer.from(data.kubeconfig, 'base64').toString())).toBe('https://10.1.0.10:6443');
    }
  });
});

it.each([
  ['100.64.0.0/16', 24],
  ['10.0.0.0/24', 25],
  ['fd00::/48', 64],
])('nodes of %s get a /%i', (pods, expected) => expect(nodeMaskSize(pods)).toBe(expected));

describe('usable', () => {
  const client = (ready: boolean, refusal?: string | Error, allowed = true): UsableClient => ({
    ready: async () => ready,
    request: async () => {
      if (refusal) throw typeof refusal === 'string' ? new Error(refusal) : refusal;
      return { status: { allowed } };
    },
  });
  const refused = (code: number, message: string) => new KubeApiError('POST', code, { message });
  it('is true for an API server that answers and authorizes', async () =>
    expect(await isUsable(client(true))).toEqual({ usable: true }));
  it('is false when not ready', async () => expect((await isUsable(client(false))).usable).toBe(false));
  it('is true when only the last startup steps are missing', async () => {
    const lacking = (check: string): UsableClient => ({
      ...client(true),
      ready: async ({ apartFrom }) => apartFrom.includes(check),
    });
    for (const late of [
      'scheduling/bootstrap-system-priority-classes',
      'rbac/bootstrap-roles',
      'priority-and-fairness-config-producer',
    ])
      expect(await isUsable(lacking(`poststarthook/${late}`))).toEqual({ usable: true });
    expect((await isUsable(lacking('poststarthook/crd-informer-synced'))).usable).toBe(false);
  });
  it('is false without namespaces', async () => {
    const bare: UsableClient = {
      ...client(true),
      request: async (method, path) => {
        if (method === 'GET') throw refused(404, `${path} not found`);
        return { status: { allowed: true } };
      },
    };
    expect((await isUsable(bare)).usable).toBe(false);
  });
  it('is false when requests are refused', async () =>
    expect(await isUsable(client(true, 'forbidden'))).toEqual({ usable: false, reason: 'forbidden' }));
  it('is false when the admin has no rights', async () =>
    expect((await isUsable(client(true, undefined, false))).usable).toBe(false));
  it("is false when the admin's roles are missing", async () =>
    expect((await isUsable(client(true, refused(403, 'forbidden: User "admin" cannot create resource')))).usable).toBe(
      false,
    ));
  it.each([
    [403, 'admission webhook "no.example.com" denied the request: never'],
    [500, 'Internal error occurred: failed calling webhook "no.example.com": connection refused'],
    [422, "is forbidden: ValidatingAdmissionPolicy 'never' with binding 'all' denied request: no"],
  ])('is also what a tenant guards with admission of its own: %i %s', async (code, message) =>
    expect(await isUsable(client(true, refused(code, message)))).toEqual({ usable: true }),
  );
});
