import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { load, loadAll } from 'js-yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { crds } from '../../../operator/api/crd.ts';
import type { KubeObject } from '../../../operator/api/meta.ts';
import { OPERATOR_REPOSITORY } from '../../../operator/garden/images/operator-image/build-operator-image.ts';
import { ToolCache, toolsDirectory } from '../../../operator/garden/toolchain/cache.ts';

const CHART = 'charts/coppice';
const values = load(readFileSync(`${CHART}/values.yaml`, 'utf8')) as Record<string, any>;
const chart = load(readFileSync(`${CHART}/Chart.yaml`, 'utf8')) as Record<string, string>;
/** Helm is a tool of late end-to-end tests: where it was not made yet, they are what renders the chart. */
const helm = await new ToolCache(toolsDirectory()).find('helm');

describe("the chart's values", () => {
  it('name the image that npm run image builds', () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    expect(values.image.repository).toBe(OPERATOR_REPOSITORY);
    expect(chart.appVersion).toBe(version);
  });

  it('have a schema with exactly the same keys', () => {
    const schema = JSON.parse(readFileSync(`${CHART}/values.schema.json`, 'utf8')) as Schema;
    const missing = (value: unknown, known: Schema | undefined, path: string): string[] => {
      if (!known) return [path];
      if (known.additionalProperties !== false || typeof value !== 'object' || value === null) return [];
      return Object.entries(value).flatMap(([key, inner]) => missing(inner, known.properties?.[key], `${path}.${key}`));
    };
    expect(missing(values, schema, '')).toEqual([]);
    const unused = Object.keys(schema.properties ?? {}).filter((name) => !(name in values) && name !== 'global');
    expect(unused).toEqual([]);
  });
});

it('contain none that no template reads', () => {
  const templates = readdirSync(`${CHART}/templates`, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(yaml|tpl)$/.test(name))
    .map((name) => readFileSync(`${CHART}/templates/${name}`, 'utf8'))
    .join('\n');
  const isRead = (path: string) => new RegExp(`\\.Values${path.replaceAll('.', '\\.')}\\b`).test(templates);
  // Where a template reads all of an object, it reads what is in it.
  const unread = (value: unknown, path: string): string[] => {
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    if (isRead(path) && !(isObject && Object.keys(value).some((key) => isRead(`${path}.${key}`)))) return [];
    return isObject && path !== '' && Object.keys(value).length > 0
      ? Object.entries(value).flatMap(([key, inner]) => unread(inner, `${path}.${key}`))
      : [path];
  };
  expect(Object.entries(values).flatMap(([key, value]) => unread(value, `.${key}`))).toEqual([]);
});

interface Schema {
  additionalProperties?: unknown;
  properties?: Record<string, Schema>;
}

describe.skipIf(!helm)('the chart, rendered by Helm', () => {
  let home: string;
  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'coppice-helm-'));
  });
  afterAll(() => rm(home, { recursive: true, force: true }));

  const render = async (...sets: string[]): Promise<KubeObject[]> => {
    const args = ['template', 'coppice', CHART, '--namespace', 'platform', ...sets.flatMap((one) => ['--set', one])];
    const env = { PATH: process.env.PATH, HOME: home };
    const { stdout } = await promisify(execFile)(helm!, args, { env, maxBuffer: 1 << 25 });
    return (loadAll(stdout) as KubeObject[]).filter(Boolean);
  };
  const METRICS_FROM = 'networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.team=monitoring';
  const all = [
    ...['serviceMonitor', 'prometheusRule', 'dashboards'].map((name) => `monitoring.${name}.enabled=true`),
    METRICS_FROM,
  ];
  const podsOf = (objects: KubeObject[]) =>
    objects.flatMap((object) =>
      object.kind === 'Pod' ? [object.spec] : object.spec?.template?.spec ? [object.spec.template.spec] : [],
    );

  it('runs every pod by the Pod Security Standard "restricted", with a read-only file system', async () => {
    const pods = podsOf(await render());
    expect(pods).toHaveLength(4);
    for (const { securityContext, containers, volumes } of pods) {
      expect(securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
      for (const container of containers) {
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
        expect(container.image).toBe(`${values.image.repository}:${chart.appVersion}`);
        expect(container.resources.limits.memory).toBeDefined();
        expect(container.resources.requests.cpu).toBeDefined();
      }
      for (const volume of volumes) expect(volume.emptyDir.sizeLimit, volume.name).toBeDefined();
    }
  });

  it('gives Jobs the rights for their task only', async () => {
    const objects = await render();
    const rules = (name: string) =>
      objects.find(({ kind, metadata }) => kind === 'ClusterRole' && metadata.name === name)!.rules;
    expect(rules('coppice-uninstall')).toEqual([
      { apiGroups: ['multi-cluster.demo.io'], resources: ['workerclusters', 'shoots'], verbs: ['list'] },
    ]);
    const [ours, making] = rules('coppice-crds');
    expect(ours.resourceNames.sort()).toEqual(
      crds()
        .map(({ metadata }) => metadata.name)
        .sort(),
    );
    expect([ours.verbs, making.verbs]).toEqual([['get', 'update'], ['create']]);
    const hooks = objects.filter(({ kind }) => kind === 'Job');
    expect(hooks.map(({ metadata }) => metadata.annotations!['helm.sh/hook']).sort()).toEqual([
      'pre-delete',
      'pre-install,pre-upgrade,pre-rollback',
    ]);
  });

  it("annotates the ServiceAccount with values for the cloud's identity", async () => {
    const account = async (...sets: string[]) =>
      (await render(...sets)).find(
        ({ kind, metadata: { name } }) => kind === 'ServiceAccount' && name === 'coppice-operator',
      )!;
    expect((await account()).metadata.annotations).toBeUndefined();
    const { metadata } = await account('serviceAccount.annotations.iam\\.gke\\.io/gcp-service-account=a@b.iam');
    expect(metadata.annotations).toEqual({ 'iam.gke.io/gcp-service-account': 'a@b.iam' });
  });

  it('gives the operator a Lease of its own, and no right to others', async () => {
    const objects = await render();
    const rights = objects.filter(
      ({ kind, rules }) => kind.endsWith('Role') && JSON.stringify(rules).includes('"leases"'),
    );
    expect(rights.map(({ kind, metadata: { name, namespace } }) => [kind, namespace, name])).toEqual([
      ['Role', 'platform', 'coppice-operator'],
      ['Role', 'platform', 'coppice-test'],
    ]);
    expect(rights[0]!.rules[0]).toMatchObject({ resourceNames: ['coppice-operator'], verbs: ['get', 'update'] });
    const { subjects, roleRef } = objects.find(
      ({ kind, metadata }) => kind === 'RoleBinding' && metadata.name === 'coppice-operator',
    )!;
    expect(roleRef).toMatchObject({ kind: 'Role', name: 'coppice-operator' });
    expect(subjects).toEqual([{ kind: 'ServiceAccount', name: 'coppice-operator', namespace: 'platform' }]);
  });

  it("selects the operator's pods, and no Job's, by Service, budget and network policy", async () => {
    const objects = await render(...all);
    const of = (kind: string) =>
      objects.find((object) => object.kind === kind && object.metadata.name.startsWith('coppice-operator'))!;
    const labels = of('Deployment').spec.template.metadata.labels;
    const chosen = [
      of('Service').spec.selector,
      of('PodDisruptionBudget').spec.selector.matchLabels,
      of('NetworkPolicy').spec.podSelector.matchLabels,
      of('Deployment').spec.selector.matchLabels,
    ];
    for (const selector of chosen) {
      expect(labels).toMatchObject(selector);
      for (const job of objects.filter(({ kind }) => kind === 'Job' || kind === 'Pod'))
        expect((job.spec.template ?? job).metadata.labels).not.toMatchObject(selector);
    }
    expect(of('Service').metadata.labels).toMatchObject(of('ServiceMonitor').spec.selector.matchLabels);
    // Or alerts would name the operator's namespace for a tenant's.
    expect(of('ServiceMonitor').spec.endpoints[0].honorLabels).toBe(true);
    expect(of('PrometheusRule').spec.groups[0].rules.length).toBeGreaterThan(3);
    const dashboards = objects.find(({ metadata }) => metadata.name === 'coppice-dashboards')!;
    expect(JSON.parse((dashboards.data as Record<string, string>)['operator.json']!).uid).toBe('coppice-operator');
  });

  it('can configure a proxy for the operator, and restrict its egress to that proxy', async () => {
    const objects = await render(
      'extraEnv[0].name=HTTPS_PROXY,extraEnv[0].valueFrom.secretKeyRef.name=proxy,extraEnv[0].valueFrom.secretKeyRef.key=url',
      'networkPolicy.egress[0].to[0].ipBlock.cidr=192.0.2.10/32,networkPolicy.egress[0].ports[0].port=3128',
    );
    const { spec } = objects.find(({ kind }) => kind === 'Deployment')!;
    expect(spec.template.spec.containers[0].env).toContainEqual({
      name: 'HTTPS_PROXY',
      valueFrom: { secretKeyRef: { name: 'proxy', key: 'url' } },
    });
    expect(objects.find(({ kind }) => kind === 'NetworkPolicy')!.spec).toMatchObject({
      policyTypes: ['Ingress', 'Egress'],
      egress: [{ to: [{ ipBlock: { cidr: '192.0.2.10/32' } }], ports: [{ port: 3128 }] }],
    });
  });

  it('denies externalIPs of Services where the cluster hosts control planes, except in namespaces named by values', async () => {
    const policy = async (...sets: string[]) =>
      (await render(...sets)).filter(({ metadata }) => metadata.name.startsWith('seed-services.'));
    const [rules, binding] = await policy('seed.externalIPs.allowedNamespaces={metallb-system,edge}');
    expect(rules!.spec.matchConditions).toMatchObject([
      { expression: '!(request.namespace in ["metallb-system","edge"])' },
    ]);
    expect(binding!.spec).toMatchObject({ policyName: rules!.metadata.name, validationActions: ['Deny'] });
    const [byDefault] = await policy();
    expect(byDefault!.spec.matchConditions[0].expression).toBe('!(request.namespace in [])');
    expect(await policy('seed.inGarden=false')).toEqual([]);
  });

  it('permits helm test to read metrics, and others only if values name them', async () => {
    const test = {
      podSelector: {
        matchLabels: { 'app.kubernetes.io/name': 'coppice-job', 'app.kubernetes.io/instance': 'coppice' },
      },
    };
    const callers = async (...sets: string[]) => {
      const { spec } = (await render(...sets)).find(({ kind }) => kind === 'NetworkPolicy')!;
      expect(spec.policyTypes).toEqual(['Ingress']);
      expect(spec.ingress).toHaveLength(1);
      expect(spec.ingress[0].ports).toEqual([{ port: 'health' }]);
      return spec.ingress[0].from;
    };
    expect(await callers()).toEqual([test]);
    expect(await callers(METRICS_FROM)).toEqual([test, { namespaceSelector: { matchLabels: { team: 'monitoring' } } }]);
    // A ServiceMonitor that can read nothing would look like an operator that is down.
    const monitor = 'monitoring.serviceMonitor.enabled=true';
    await expect(render(monitor)).rejects.toThrow(/networkPolicy.metricsFrom is empty/);
    await render(monitor, 'networkPolicy.enabled=false');
  });

  it('permits users named by values to read profiles and request kubeconfigs', async () => {
    const bound = async (name: string, ...sets: string[]) =>
      (await render(...sets)).find(({ kind, metadata }) => kind === 'ClusterRoleBinding' && metadata.name === name);
    const everybody = { kind: 'Group', name: 'system:authenticated' };
    for (const [name, value] of [
      ['coppice:profile-readers', 'cloudProfiles.readers'],
      ['coppice:kubeconfig-requesters', 'kubeconfigs.requesters'],
    ] as const) {
      expect(await bound(name)).toMatchObject({ roleRef: { name }, subjects: [everybody] });
      const [kind, who] = [`${value}[0].kind=Group`, `${value}[0].name=tenants`];
      expect(await bound(name, kind, who)).toMatchObject({ subjects: [{ kind: 'Group', name: 'tenants' }] });
      expect(await bound(name, `${value}=null`)).toBeUndefined();
    }
  });

  it('gives the operator five minutes to listen before the liveness probe fails', async () => {
    const { spec } = (await render()).find(({ kind }) => kind === 'Deployment')!;
    const { periodSeconds, failureThreshold } = spec.template.spec.containers[0].startupProbe;
    expect(periodSeconds * failureThreshold).toBeGreaterThanOrEqual(300);
  });

  it('has no disruption budget for a single replica, which could never be evicted', async () => {
    const kinds = (await render('replicas=1')).map(({ kind }) => kind);
    expect(kinds).not.toContain('PodDisruptionBudget');
  });

  it('rejects unknown values by name', async () => {
    await expect(render('image.repositry=x')).rejects.toThrow(/repositry/);
    await expect(render('replicas=0')).rejects.toThrow(/replicas/);
  });
});
