import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { findCondition, isTrue } from '../../operator/api/conditions.ts';
import { KubeClient } from '../../operator/kube/client.ts';
import {
  conditionIsTrue,
  DEPLOYMENTS,
  type Deployment,
  NODES,
  type Node,
  PODS,
  type Pod,
} from '../../operator/kube/resources.ts';
import {
  e2e,
  forwardPort,
  garden,
  gardenClient,
  kubectl,
  ok,
  PATIENCE_MS,
  temporaryFile,
  uniqueName,
} from '../kit/garden.ts';
import { OutsideGarden } from '../kit/outside-garden.ts';
import { testImages } from '../kit/tools.ts';
import { echoService, run, validatingWebhook } from '../kit/workload.ts';

const AGENTS = { namespace: 'kube-system', labelSelector: 'k8s-app=konnectivity-agent' };
const AGENT = 'konnectivity-agent';

e2e('a hosted cluster whose machines are outside of its seed', () => {
  const name = uniqueName('far');
  let outside: OutsideGarden;
  let client: KubeClient;
  let kubeconfig: string;
  let pod: Pod;
  const inCluster = (...args: string[]) => kubectl(args, { kubeconfig });
  const logs = () => inCluster('logs', pod.metadata.name);
  const system = async (reason: string) =>
    outside.until(
      name,
      (shoot) => {
        const found = findCondition(shoot?.status?.conditions, 'SystemComponentsHealthy');
        return found?.reason === reason && found;
      },
      `to have its system components ${reason}`,
    );

  beforeAll(async () => {
    await testImages('proxy-server', 'proxy-agent');
    outside = await OutsideGarden.start(gardenClient(), await readFile(garden.kubeconfig, 'utf8'));
    await outside.apply(name, { replicas: 1 });
    await outside.until(name, (shoot) => isTrue(shoot?.status?.conditions, 'Ready'), 'to be Ready');
    const text = await outside.kubeconfig(name);
    kubeconfig = await temporaryFile(`${name}.yaml`, text);
    client = KubeClient.fromKubeconfig(text);
    await client.apply(echoService('echo'));
    pod = (await run(client, { name: 'echo' }))[0]!;
  });

  afterAll(async () => {
    await client?.close();
    await outside?.delete(name);
    await outside?.stop();
  });

  it('has a tunnel opened by its machines, and reports it', async () => {
    expect((await system('Healthy')).message).toBe('cluster DNS serves, the tunnel from the API server is open');
    expect((await client.list<Pod>(PODS, AGENTS)).items).toHaveLength(1);
  });

  it('serves logs and exec, and reaches kubelets by node name', async () => {
    expect(ok(await logs())).toContain(`as ${pod.metadata.name}`);
    const said = ok(
      await inCluster('exec', pod.metadata.name, '--', '/usr/local/bin/echo', 'get', 'http://127.0.0.1:8080/inside'),
    );
    expect(said).toContain('path=/inside');
    const [node] = (await client.list<Node>(NODES)).items;
    expect(await client.request('GET', `/api/v1/nodes/${node!.metadata.name}/proxy/healthz`)).toBe('ok');
  });

  it('forwards ports', async () => {
    const forward = await forwardPort(pod.metadata.name, ':8080', { kubeconfig });
    expect(await (await fetch(`${forward.url}/forwarded`)).text()).toContain('path=/forwarded');
    forward.end();
  });

  it("reaches pods and Services from the agent's location", async () => {
    const [agent] = (await client.list<Pod>(PODS, AGENTS)).items;
    const said = await client.request<string>('GET', '/api/v1/namespaces/default/services/echo:80/proxy/hello');
    expect(said).toContain('path=/hello');
    expect(said).toContain(`client=${agent!.status!.podIP}:`);
  });

  it('calls webhooks in the cluster', async () => {
    const labels = { webhook: name };
    await client.request('POST', '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations', {
      body: validatingWebhook('echo', { name: 'echo', port: 80 }, labels),
    });
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'judged', namespace: 'default', labels } };
    // The echo server has no TLS: that it was asked is what its answer shows.
    await expect
      .poll(async () => String(await client.create(object).catch((error: Error) => error.message)), {
        timeout: PATIENCE_MS,
      })
      .toContain('server gave HTTP response to HTTPS client');
  });

  it('accepts nobody else as an agent', async () => {
    const { spec } = await client.get<Deployment>(DEPLOYMENTS, AGENT, 'kube-system');
    await client.create({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'stranger', namespace: 'kube-system' },
      spec: { ...spec.template.spec, serviceAccountName: 'default' },
    });
    const place = ['--namespace', outside.seedNamespace(name), 'deployment/kube-apiserver'];
    const server = async () => ok(await kubectl(['logs', ...place, '--container=konnectivity-server']));
    await expect.poll(server, { timeout: 60_000 }).toMatch(/incoming request from .*default.* service account/);
    const stranger = await client.get<Pod>(PODS, 'stranger', 'kube-system');
    expect(conditionIsTrue(stranger, 'Ready')).toBe(false);
    await client.delete(PODS, 'stranger', 'kube-system');
  });

  it('reports what fails without a tunnel, and recovers when it is opened', async () => {
    const scale = (replicas: number) =>
      client.mergePatch<Deployment>(DEPLOYMENTS, AGENT, 'kube-system', { spec: { replicas } });
    await scale(0);
    const { message } = await system('TunnelDown');
    expect(message).toContain('kubectl logs, exec and port-forward, webhooks and aggregated APIs');
    // Its last agent serves what it has for some seconds.
    await expect.poll(async () => (await logs()).stderr, { timeout: 30_000 }).toContain('No agent available');
    await scale(1);
    await system('Healthy');
    expect(ok(await logs())).toContain(`as ${pod.metadata.name}`);
  });

  it('has a tunnel to each of three API servers', async () => {
    await outside.apply(name, { replicas: 3 });
    await outside.until(
      name,
      (shoot) =>
        shoot?.status?.observedGeneration === shoot?.metadata.generation &&
        shoot?.status?.controlPlane?.ready === 3 &&
        isTrue(shoot?.status?.conditions, 'Ready'),
      'to have three of everything',
    );
    const dozen = async () => (await Promise.all(Array.from({ length: 12 }, logs))).filter(({ code }) => code !== 0);
    // An agent looks each second for servers that it has not met, and meets one by chance.
    await expect.poll(async () => (await dozen()).map(({ stderr }) => stderr), { timeout: 120_000 }).toEqual([]);
  });
});
