import { X509Certificate } from 'node:crypto';
import { expect, it } from 'vitest';
import type { KubeObject } from '../../../operator/api/meta.ts';
import { isSystem } from '../../../operator/burst/demand.ts';
import { IMAGES } from '../../../operator/garden/images/catalog.ts';
import {
  foreignMetrics,
  METRICS_SERVER_APP,
  metricsAPI,
  metricsServer,
  metricsServerParts,
} from '../../../operator/shoot/metrics-server.ts';
import { issueShootPKI, pkiParameters, planShootPKI } from '../../../operator/shoot/pki.ts';
import { buildPod } from '../../kit/builders/objects.ts';
import { controlPlane, NOW, pkiOf } from './values.ts';

const parameters = { ...pkiParameters(controlPlane()), metricsServer: true };
const without = await pkiOf(controlPlane());
const pki = await issueShootPKI(without, planShootPKI(without, parameters, NOW), parameters, NOW);
const objects = metricsServer(pki);
const ofKind = (kind: string) => objects.filter((object) => object.kind === kind);
const only = (kind: string) => ofKind(kind)[0] as KubeObject & Record<string, any>;
const api = metricsAPI(pki) as KubeObject & Record<string, any>;
const [container] = only('Deployment').spec.template.spec.containers;
const text = (base64: string) => Buffer.from(base64, 'base64').toString();

it('metrics-server adds one certificate to a cluster and renews no other', () => {
  expect(planShootPKI(without, parameters, NOW).issue).toEqual([{ id: 'metrics-server', reason: 'missing' }]);
  expect(planShootPKI(pki, parameters, NOW).issue).toEqual([]);
  // Nor is one renewed that nobody uses any more.
  const inAYear = new Date(+NOW + 360 * 86_400_000);
  const renewed = planShootPKI(pki, pkiParameters(controlPlane()), inAYear).issue.map(({ id }) => id);
  expect(renewed).not.toContain('metrics-server');
});

it('metrics-server is verified by API servers through a certificate for its Service name', () => {
  const { name, namespace } = only('Service').metadata;
  const certificate = new X509Certificate(text(only('Secret').data['tls.crt']));
  expect(certificate.checkHost(`${name}.${namespace}.svc`)).toBeDefined();
  expect(certificate.verify(new X509Certificate(text(api.spec.caBundle)).publicKey)).toBe(true);
  expect(api.spec.insecureSkipTLSVerify).toBeUndefined();
  expect(api.spec.service).toMatchObject({ name, namespace });
});

it("metrics-server verifies kubelets by the cluster's CA alone", () => {
  expect(container.args).toContain(
    '--kubelet-certificate-authority=/var/run/secrets/kubernetes.io/serviceaccount/ca.crt',
  );
  expect(container.args.join(' ')).not.toContain('insecure');
});

it('metrics-server may read nodes and pods, write nothing, and see no Secret', () => {
  const rules = ofKind('ClusterRole').flatMap(({ rules }) => rules as { resources: string[]; verbs: string[] }[]);
  expect(new Set(rules.flatMap(({ resources }) => resources))).toEqual(new Set(['nodes/metrics', 'nodes', 'pods']));
  expect(new Set(rules.flatMap(({ verbs }) => verbs))).toEqual(new Set(['get', 'list', 'watch']));
  expect(only('Deployment').spec.template.spec.securityContext).toMatchObject({ runAsNonRoot: true });
  expect(container.securityContext).toMatchObject({ readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } });
});

it("metrics-server runs the garden's image with the program in it", () => {
  expect(container.image).toBe(IMAGES['metrics-server'].ref);
  expect(container.command).toEqual([IMAGES['metrics-server'].path]);
});

it('metrics-server keeps no node and buys none', () => {
  const { metadata } = only('Deployment').spec.template;
  expect(isSystem(buildPod({ metadata: { ...metadata, namespace: 'kube-system' } }))).toBe(true);
});

it('metrics-server is restarted by a new certificate, which it reads at startup', async () => {
  const again = await issueShootPKI(pki, { issue: [{ id: 'metrics-server', reason: 'expiring' }] }, parameters, NOW);
  const [deployment] = metricsServer(again).filter(({ kind }) => kind === 'Deployment') as (KubeObject & {
    spec: any;
  })[];
  expect(deployment!.spec.template.metadata).not.toEqual(only('Deployment').spec.template.metadata);
});

it('metrics-server is deleted with its APIService first and its ServiceAccount last', () => {
  const namesOf = (all: readonly KubeObject[]) => all.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
  const parts = namesOf(metricsServerParts());
  expect(parts.toSorted()).toEqual(namesOf([...objects, api]).toSorted());
  expect(parts[0]).toMatch(/^APIService /);
  expect(parts.at(-1)).toBe(`ServiceAccount ${METRICS_SERVER_APP}`);
  expect(namesOf(objects)[0]).toBe(parts.at(-1));
});

it('metrics-server is distinguished from a foreign metrics API', () => {
  const served = (service: { name: string; namespace: string } | undefined) => ({
    ...api,
    spec: { ...(service && { service }) },
  });
  expect(foreignMetrics(undefined)).toBeUndefined();
  expect(foreignMetrics(api)).toBeUndefined();
  expect(foreignMetrics(served({ name: 'metrics-server', namespace: 'kube-system' }))).toBe(
    'kube-system/metrics-server',
  );
  expect(foreignMetrics(served({ name: METRICS_SERVER_APP, namespace: 'other' }))).toBe(`other/${METRICS_SERVER_APP}`);
  expect(foreignMetrics(served(undefined))).toBe('the API server');
});
