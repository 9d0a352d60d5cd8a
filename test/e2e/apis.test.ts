import { beforeAll, describe, expect, it } from 'vitest';
import { isTrue } from '../../operator/api/conditions.ts';
import { COMPONENTS } from '../../operator/api/names.ts';
import type { KubeClient } from '../../operator/kube/client.ts';
import { CONFIGMAPS, type KubeObject, NODES, type Node, type Pod } from '../../operator/kube/resources.ts';
import { createCA, issue } from '../../operator/pki/certificates.ts';
import { METRICS_SERVER_APP } from '../../operator/shoot/metrics-server.ts';
import {
  clusterClient,
  e2e,
  forwardPort,
  kubeconfigFile,
  kubectl,
  makeCluster,
  type Name,
  ok,
  PATIENCE_MS,
  seedPods,
  until,
  untilReady,
} from '../kit/garden.ts';
import {
  aggregatedAPI,
  convertedCRD,
  type Extension,
  echoService,
  run,
  VALIDATING_WEBHOOKS,
  validatingWebhook,
} from '../kit/workload.ts';

/** A figure of `kubectl top`, more than nothing. */
const CPU = /^[1-9]\d*m$/;
const MEMORY = /^[1-9]\d*Mi$/;
const words = (text: string): string[][] =>
  text
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/ +/));

e2e('API extensions in a local cluster with two nodes', () => {
  let cluster: Name;
  let client: KubeClient;
  let kubeconfig: string;
  let pods: Pod[];
  const inCluster = (...args: string[]) => kubectl(args, { kubeconfig });

  beforeAll(async () => {
    cluster = await makeCluster({ dataPlaneNodes: 2 });
    await untilReady(cluster);
    client = await clusterClient(cluster);
    kubeconfig = await kubeconfigFile(cluster);
    await client.apply(echoService('echo'));
    pods = await run(client, { name: 'echo', replicas: 2, spread: true, requests: { cpu: '5m', memory: '8Mi' } });
  });

  it('include Services that kubectl port-forward reaches', async () => {
    const forward = await forwardPort('service/echo', ':80', { kubeconfig });
    const said = Object.fromEntries(
      words(await (await fetch(`${forward.url}/hello`)).text()).map(([line]) => line!.split('=') as [string, string]),
    );
    expect(said.path).toBe('/hello');
    expect(pods.map((pod) => pod.metadata.name)).toContain(said.hostname);
    forward.end();
  });

  describe('by a server in the cluster with its own certificate', () => {
    const name = 'judge';
    let extension: Extension;

    beforeAll(async () => {
      const ca = await createCA({ commonName: name, days: 1 });
      const dnsNames = [`${name}.default.svc`];
      const serving = await issue(ca, { commonName: name, dnsNames, usages: ['server'], days: 1 });
      await client.apply(echoService(name, 443, 8443));
      await run(client, { name, serving });
      extension = { service: { name, port: 443 }, ca: ca.cert };
    });

    it('include an admission webhook, until it is deleted', async () => {
      const labels = { 'judged-by': name };
      const body = validatingWebhook(name, extension.service, labels, extension.ca);
      await client.request('POST', VALIDATING_WEBHOOKS, { body });
      const make = async (object: string) => {
        const metadata = { name: object, namespace: 'default', labels };
        return client.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata }).then(
          () => 'made',
          (error: Error) => error.message,
        );
      };
      // An API server learns of a webhook, and that it has gone, some moments after it has taken that.
      const again = async () => {
        await client.delete(CONFIGMAPS, 'refused', 'default');
        return make('refused');
      };
      await expect.poll(again, { timeout: PATIENCE_MS }).toContain('denied the request: its name is refused');
      expect(await make('welcome')).toBe('made');
      ok(await inCluster('delete', 'validatingwebhookconfiguration', name));
      await expect.poll(again, { timeout: PATIENCE_MS }).toBe('made');
    });

    it('exclude a webhook whose certificate has another CA', async () => {
      const labels = { 'judged-by': 'stranger' };
      const { cert } = await createCA({ commonName: 'stranger', days: 1 });
      const body = validatingWebhook('stranger', extension.service, labels, cert);
      await client.request('POST', VALIDATING_WEBHOOKS, { body });
      const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'any', namespace: 'default', labels } };
      const make = async () => {
        await client.delete(CONFIGMAPS, 'any', 'default');
        return client.create(object).then(
          () => 'made',
          (error: Error) => error.message,
        );
      };
      await expect.poll(make, { timeout: PATIENCE_MS }).toContain('certificate signed by unknown authority');
      ok(await inCluster('delete', 'validatingwebhookconfiguration', 'stranger'));
    });

    it('include an aggregated API, which learns who asks', async () => {
      await client.create(aggregatedAPI('asked.test', extension));
      ok(await inCluster('wait', '--for=condition=Available', 'apiservice/v1.asked.test', '--timeout=300s'));
      const echo = JSON.parse(ok(await inCluster('get', '--raw', '/apis/asked.test/v1/echoes/hello')));
      expect(echo).toMatchObject({ kind: 'Echo', metadata: { name: 'hello' }, askedBy: 'coppice:admin' });
      // As any other kind: by its name in discovery.
      expect(ok(await inCluster('get', 'echoes.asked.test', 'hello', '--output=name'))).toBe('echo.asked.test/hello\n');
      ok(await inCluster('delete', 'apiservice', 'v1.asked.test'));
    });

    it('include conversion of custom resources from and to the stored version', async () => {
      await client.create(convertedCRD('converted.test', extension));
      ok(await inCluster('wait', '--for=condition=Established', 'crd/notes.converted.test', '--timeout=300s'));
      const notes = (version: string) => `/apis/converted.test/${version}/namespaces/default/notes`;
      const note = (version: string, object: string) => ({
        apiVersion: `converted.test/${version}`,
        kind: 'Note',
        metadata: { name: object },
        spec: { text: 'as it was' },
      });
      await client.request('POST', notes('v1'), { body: note('v1', 'stored') });
      await client.request('POST', notes('v2'), { body: note('v2', 'brought') });
      const read = (version: string, object: string) =>
        client.request<KubeObject>('GET', `${notes(version)}/${object}`);
      expect(await read('v1', 'stored')).toMatchObject({ spec: { text: 'as it was' } });
      const converted = { apiVersion: 'converted.test/v2', spec: { convertedFrom: 'converted.test/v1' } };
      expect(await read('v2', 'stored')).toMatchObject(converted);
      expect(await read('v1', 'brought')).toMatchObject({ spec: { convertedFrom: 'converted.test/v2' } });
      ok(await inCluster('delete', 'crd', 'notes.converted.test'));
    });
  });

  describe('by metrics-server on request', () => {
    const ask = (enabled: boolean) => {
      const patch = JSON.stringify({ spec: { addons: { metricsServer: { enabled } } } });
      // As the guide says it.
      return kubectl(['patch', 'wc', cluster.name, '-n', cluster.namespace, '--type=merge', '--patch', patch]);
    };
    const controlPlane = async () =>
      (await seedPods(cluster))
        .filter(({ metadata }) => Object.values<string>(COMPONENTS).includes(metadata.labels?.app ?? ''))
        .map(({ metadata }) => metadata.uid)
        .toSorted();
    let before: (string | undefined)[];

    beforeAll(async () => {
      before = await controlPlane();
      expect((await inCluster('top', 'nodes')).stderr).toContain('Metrics API not available');
      ok(await ask(true));
      await until(cluster, (found) => isTrue(found?.status?.conditions, 'AddonsReady'), 'to have its addons');
    });

    it('show the usage of nodes and pods', async () => {
      const nodes = (await client.list<Node>(NODES)).items.map(({ metadata }) => metadata.name).toSorted();
      const top = words(ok(await inCluster('top', 'nodes', '--no-headers')));
      expect(top.map(([name]) => name).toSorted()).toEqual(nodes);
      for (const [, cpu, , memory] of top) {
        expect(cpu).toMatch(CPU);
        expect(memory).toMatch(MEMORY);
      }
      const ofPods = words(ok(await inCluster('top', 'pods', '--no-headers', '--selector=app=echo')));
      expect(ofPods.map(([name]) => name).toSorted()).toEqual(pods.map(({ metadata }) => metadata.name).toSorted());
      for (const [, , memory] of ofPods) expect(memory).toMatch(MEMORY);
    });

    it('show usage to users with view rights in a namespace, and to nobody else', async () => {
      ok(await inCluster('create', 'rolebinding', 'views', '--clusterrole=view', '--user=jane'));
      ok(await inCluster('top', 'pods', '--as=jane'));
      const others = await inCluster('top', 'pods', '--as=john');
      expect(others.stderr).toContain('User "john" cannot list resource "pods" in API group "metrics.k8s.io"');
    });

    it('give HorizontalPodAutoscalers the usage by which they scale', async () => {
      ok(await inCluster('autoscale', 'deployment', 'echo', '--cpu=1000%', '--min=1', '--max=2'));
      const seen = async () => JSON.parse(ok(await inCluster('get', 'hpa', 'echo', '--output=json'))).status;
      await expect.poll(seen, { timeout: PATIENCE_MS, interval: 1_000 }).toMatchObject({
        currentMetrics: [{ resource: { name: 'cpu', current: { averageValue: expect.anything() } } }],
      });
      ok(await inCluster('delete', 'hpa', 'echo'));
    });

    it('come and go without replacement of any part of the control plane', async () => {
      ok(await ask(false));
      const isSaid = (found: { status?: { conditions?: { type: string }[] } } | undefined) =>
        found?.status?.conditions?.some(({ type }) => type === 'AddonsReady');
      await until(
        cluster,
        (found) => !isSaid(found) && isTrue(found?.status?.conditions, 'Ready'),
        'to have no addons',
      );
      await untilReady(cluster);
      expect((await inCluster('top', 'nodes')).stderr).toContain('Metrics API not available');
      const all = ['deployments,services,secrets,serviceaccounts,apiservices,clusterroles,clusterrolebindings', '-A'];
      expect(ok(await inCluster('get', ...all, '--output=name'))).not.toContain(METRICS_SERVER_APP);
      expect(await controlPlane()).toEqual(before);
    });
  });
});
