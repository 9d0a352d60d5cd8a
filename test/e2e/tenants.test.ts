import { beforeAll, expect, it } from 'vitest';
import { LABELS } from '../../operator/api/group.ts';
import { KUBECONFIG_SIGNERS } from '../../operator/api/kubeconfig-request.ts';
import type { Seed } from '../../operator/api/seed.ts';
import { CSRS, NAMESPACES, PODS, SEEDS } from '../../operator/kube/resources.ts';
import { newCertificateRequest } from '../../operator/pki/certificate-request.ts';
import { e2e, gardenClient, kubectl, temporaryFile, uniqueName } from '../kit/garden.ts';
import { ECHO_IMAGE } from '../kit/workload.ts';

e2e('a tenant with role edit in a namespace of the garden, which is its own seed', () => {
  const namespace = uniqueName('tenant');
  const as = `--as=system:serviceaccount:${namespace}:app`;
  /** What kubectl says to the tenant, on standard output and error. */
  const tenant = async (...args: string[]): Promise<string> => {
    const { stdout, stderr } = await kubectl([as, '--namespace', namespace, ...args]);
    return `${stdout}${stderr}`;
  };
  const create = async (object: object) => {
    const file = await temporaryFile(`${uniqueName('object')}.json`, JSON.stringify(object));
    return tenant('create', '-f', file);
  };

  beforeAll(async () => {
    const client = gardenClient();
    await client.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    await client.create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'app', namespace } });
    await client.create({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name: 'app', namespace },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'edit' },
      subjects: [{ kind: 'ServiceAccount', name: 'app', namespace }],
    });
    return () => gardenClient().delete(NAMESPACES, namespace);
  });

  it('cannot redirect addresses of the seed by a Service', async () => {
    const spec = { selector: { app: 'thief' }, ports: [{ port: 6443 }], externalIPs: ['10.0.0.1'] };
    const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'thief', namespace }, spec };
    expect(await create(service)).toMatch(/external IPs is denied/i);
    const { externalIPs: _, ...plain } = spec;
    expect(await create({ ...service, spec: plain })).toContain('created');
    expect(await tenant('patch', 'service', 'thief', '-p', JSON.stringify({ spec }))).toMatch(
      /external IPs is denied/i,
    );
  });

  it.each<[string, string[]]>([
    ['endpoints', []],
    ['endpointslices.discovery.k8s.io', []],
    ['services', ['--subresource=status']],
    ['ingresses.networking.k8s.io', ['--subresource=status']],
    ['pods', ['--subresource=status']],
  ])('cannot write %s, by which a Service would redirect to other addresses', async (resource, more) => {
    for (const verb of ['create', 'patch', 'update'])
      expect(await tenant('auth', 'can-i', verb, resource, ...more)).toMatch(/^no/);
  });

  it("cannot take a node's port: images still come from the mirror at port 5000 by TLS", async () => {
    const { spec } = await gardenClient().get<Seed>(SEEDS, 'local');
    expect(spec.provider.providerConfig).toMatchObject({ imageMirror: expect.stringMatching(/^https:.*:5000$/) });
    const run = async (name: string, more: object = {}) => {
      const container = { name: 'echo', image: ECHO_IMAGE, imagePullPolicy: 'Always', ...more };
      const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace }, spec: { containers: [container] } };
      expect(await create(pod)).toContain('created');
      const phase = async () => (await gardenClient().get(PODS, name, namespace)).status?.phase;
      await expect.poll(phase, { timeout: 60_000 }).toBe('Running');
    };
    await run('thief', { ports: [{ containerPort: 8080, hostPort: 5000 }] });
    await run('other');
  });

  it('cannot store a large certificate request, or one for a signer of Kubernetes', async () => {
    const { request: pem } = await newCertificateRequest('x');
    const csr = (signerName: string, text: string) => ({
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: {
        name: uniqueName('csr'),
        labels: { [LABELS.workerCluster]: 'blue', [LABELS.workerClusterNamespace]: namespace },
      },
      spec: { signerName, usages: ['client auth'], request: Buffer.from(text).toString('base64') },
    });
    const before = (await gardenClient().list(CSRS)).items.length;
    expect(await create(csr(KUBECONFIG_SIGNERS.viewer, `${pem}${'\n'.repeat(900_000)}`))).toContain('spec.request');
    expect(await create(csr('kubernetes.io/kube-apiserver-client', pem))).toContain('you may only ask for kubeconfigs');
    expect((await gardenClient().list(CSRS)).items.length).toBe(before);
    expect(await create(csr(KUBECONFIG_SIGNERS.viewer, pem))).toContain('created');
  });
});
