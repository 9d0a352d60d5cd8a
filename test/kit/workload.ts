import type { KubeClient } from '../../operator/kube/client.ts';
import {
  conditionIsTrue,
  type Deployment,
  type KubeObject,
  NODES,
  type Node,
  PODS,
  type Pod,
} from '../../operator/kube/resources.ts';
import type { KeyPair } from '../../operator/pki/certificates.ts';
import { follow, PATIENCE_MS } from './garden.ts';

/** The test image; machines pull it from the garden's mirror. */
export const ECHO_IMAGE = 'coppice.test/echo:1';
const HOSTNAME = 'kubernetes.io/hostname';

export interface Workload {
  name: string;
  replicas?: number;
  /** Name of the node that the pods run on. */
  node?: string;
  /** At most one pod on a node. */
  spread?: boolean;
  requests?: Record<string, string>;
  /**
   * With it the server is also, by TLS on port 8443, an admission webhook that refuses objects named "refused", a conversion webhook, and
   * an aggregated API of any group.
   */
  serving?: KeyPair;
  /** Name of a claim that is mounted at DATA, beside the folders of the machine by which there is `/bin/sh`. */
  claim?: string;
}

/** Where the claim of a workload is mounted. */
export const DATA = '/data';
/** No image here has a shell: a machine has. */
const SHELL = ['/bin', '/lib', '/lib64', '/usr/bin', '/usr/lib'];
const shellVolume = (path: string) => `machine${path.replaceAll('/', '-')}`;

/** A Deployment of the echo server on port 8080; its pods have the label `app`. */
export function echo({ name, replicas = 1, node, spread, requests, serving, claim }: Workload): Deployment {
  const labels = { app: name };
  const antiAffinity = { labelSelector: { matchLabels: labels }, topologyKey: HOSTNAME };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: 'default' },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          terminationGracePeriodSeconds: 2,
          ...(node && { nodeSelector: { [HOSTNAME]: node } }),
          ...(spread && {
            affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [antiAffinity] } },
          }),
          containers: [
            {
              name: 'echo',
              image: ECHO_IMAGE,
              ports: [{ containerPort: 8080 }],
              // Makes `echo get https://kubernetes.default.svc/...` trust the cluster's own authority.
              env: [
                { name: 'SSL_CERT_FILE', value: '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt' },
                ...(serving
                  ? [
                      { name: 'TLS_CERT', value: serving.cert },
                      { name: 'TLS_KEY', value: serving.key },
                    ]
                  : []),
              ],
              readinessProbe: { httpGet: { path: '/', port: 8080 }, periodSeconds: 1 },
              ...(requests && { resources: { requests } }),
              ...(claim && {
                volumeMounts: [
                  { name: 'data', mountPath: DATA },
                  ...SHELL.map((path) => ({ name: shellVolume(path), mountPath: path, readOnly: true })),
                ],
              }),
            },
          ],
          ...(claim && {
            volumes: [
              { name: 'data', persistentVolumeClaim: { claimName: claim } },
              ...SHELL.map((path) => ({ name: shellVolume(path), hostPath: { path } })),
            ],
          }),
        },
      },
    },
  };
}

/** A claim that names no class. */
export const claimOf = (name: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name, namespace: 'default' },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '16Mi' } } },
});

/** A Service of that name on port 80, or another, for the pods of `echo`. */
export const echoService = (name: string, port = 80, targetPort = 8080): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace: 'default' },
  spec: { selector: { app: name }, ports: [{ port, targetPort }] },
});

/** Forbids that any pod of `app` is evicted: a PodDisruptionBudget of that name. */
export const guard = (app: string): KubeObject => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: app, namespace: 'default' },
  spec: { maxUnavailable: 0, selector: { matchLabels: { app } } },
});

/** Where webhooks that judge what is written are made. */
export const VALIDATING_WEBHOOKS = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';

/** A webhook that must be asked whether ConfigMaps, or what the rule says, with these labels may be made. */
export const validatingWebhook = (
  name: string,
  service: { name: string; port: number },
  matchLabels: Record<string, string>,
  caBundle?: string,
  rule: object = { apiGroups: [''], resources: ['configmaps'], operations: ['CREATE'] },
): KubeObject => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingWebhookConfiguration',
  metadata: { name },
  webhooks: [
    {
      name: `${name}.default.svc`,
      clientConfig: {
        service: { ...service, namespace: 'default', path: '/admit' },
        ...(caBundle && { caBundle: Buffer.from(caBundle).toString('base64') }),
      },
      rules: [{ apiVersions: ['v1'], ...rule }],
      objectSelector: { matchLabels },
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
    },
  ],
});

/** Where an API server finds what extends it: a Service in the namespace `default`, and the authority of its certificate. */
export interface Extension {
  service: { name: string; port: number };
  ca: string;
}
const base64 = (text: string) => Buffer.from(text).toString('base64');

/** A group of which the pods of `echo` serve version v1: `GET /apis/GROUP/v1/echoes/NAME` tells who asked. */
export const aggregatedAPI = (group: string, { service, ca }: Extension): KubeObject => ({
  apiVersion: 'apiregistration.k8s.io/v1',
  kind: 'APIService',
  metadata: { name: `v1.${group}` },
  spec: {
    group,
    version: 'v1',
    groupPriorityMinimum: 1000,
    versionPriority: 10,
    service: { ...service, namespace: 'default' },
    caBundle: base64(ca),
  },
});

/** Custom resources `notes`, stored as v1; the pods of `echo` make v2 of them, whose `spec.convertedFrom` tells of what. */
export const convertedCRD = (group: string, { service, ca }: Extension): KubeObject => {
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
  const version = (name: string, storage: boolean) => ({ name, storage, served: true, schema });
  const clientConfig = { service: { ...service, namespace: 'default', path: '/convert' }, caBundle: base64(ca) };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `notes.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { kind: 'Note', plural: 'notes' },
      versions: [version('v1', true), version('v2', false)],
      conversion: { strategy: 'Webhook', webhook: { clientConfig, conversionReviewVersions: ['v1'] } },
    },
  };
};

/** Applies the Deployment and waits until all its pods are Ready. */
export async function run(client: KubeClient, workload: Workload): Promise<Pod[]> {
  await client.apply(echo(workload), { fieldManager: 'coppice-e2e' });
  return untilPods(client, workload.name, (pods) => pods.length === (workload.replicas ?? 1), 'to be Ready');
}

/** Waits until the predicate holds of the Ready pods with this label `app`. */
export async function untilPods(
  client: KubeClient,
  app: string,
  predicate: (ready: Pod[]) => boolean,
  what: string,
): Promise<Pod[]> {
  const pods = await follow<Pod>(client, PODS);
  const all = () => pods.list().filter((pod) => pod.metadata.labels?.app === app);
  return pods.waitFor(
    () => {
      const ready = all().filter((pod) => conditionIsTrue(pod, 'Ready') && !pod.metadata.deletionTimestamp);
      return predicate(ready) && ready;
    },
    {
      timeoutMs: PATIENCE_MS,
      what: () => `pods ${app} ${what}; they are ${JSON.stringify(all().map((pod) => pod.status))}`,
    },
  );
}

/** Waits until the predicate holds of the nodes. */
export async function untilNodes(
  client: KubeClient,
  predicate: (nodes: Node[]) => boolean,
  what: string,
  timeoutMs: number = PATIENCE_MS,
): Promise<Node[]> {
  const nodes = await follow<Node>(client, NODES);
  return nodes.waitFor(
    () => {
      const all = nodes.list();
      return predicate(all) && all;
    },
    {
      timeoutMs,
      what: () =>
        `nodes ${what}; they are ${nodes
          .list()
          .map((node) => node.metadata.name)
          .join(', ')}`,
    },
  );
}
