import { errorText } from '../../api/errors.ts';
import { FIELD_MANAGER, LABELS, ROLES } from '../../api/group.ts';
import type { KubeClient } from '../../kube/client.ts';
import { sleep } from '../../kube/clock.ts';
import type { NetworkPolicy } from '../../kube/network-policy.ts';
import { asNobody, NOBODY, podSecurityLabels, UNPRIVILEGED } from '../../kube/pod-security.ts';
import {
  conditionIsTrue,
  type KubeObject,
  NAMESPACES,
  NETWORKPOLICIES,
  NODES,
  type Node,
  PODS,
  type Pod,
} from '../../kube/resources.ts';
import { httpProbe } from '../../shoot/pod.ts';
import { ETCD_CLIENT_PORT } from '../../shoot/values.ts';
import { ETCD_IMAGE } from '../../shoot/versions.ts';

/** Result of a trial. `Unknown`: it could not run, with the reason. */
export type TrialResult = { enforced: boolean } | { enforced: 'Unknown'; because: string };

/** Time to start, including an image pull. */
const START_MS = 120_000;
/** Time for a policy to take effect; a slower network is no protection. */
const HOLD_MS = 30_000;
const LOOK_MS = 500;
const SERVER = 'server';
const CALLER = 'caller';
const POLICY = 'nobody-calls-the-server';

interface Trial {
  readonly client: KubeClient;
  /** Identity of the garden: two may share a seed. */
  readonly gardenID: string;
  readonly signal: AbortSignal;
}

/**
 * Tests whether a network enforces NetworkPolicies: one pod calls another every second, shown by its readiness. Calls
 * must fail once a policy forbids them, and succeed after its removal. Uses a namespace of its own, which is deleted.
 * Rejects only on abort.
 */
export async function tryNetworkPolicies(trial: Trial): Promise<TrialResult> {
  const { client, gardenID, signal } = trial;
  const labels = { [LABELS.managedBy]: FIELD_MANAGER, [LABELS.role]: ROLES.networkTrial, [LABELS.garden]: gardenID };
  let namespace: string | undefined;
  try {
    const { items: nodes } = await client.list<Node>(NODES, { signal });
    if (!nodes.some((node) => conditionIsTrue(node, 'Ready'))) return unknown('the seed has no node that is Ready');
    // Leftovers of an interrupted trial.
    const { items: left } = await client.list<KubeObject>(NAMESPACES, { labelSelector: selectorOf(labels), signal });
    for (const { metadata } of left) await client.delete(NAMESPACES, metadata.name, undefined, { signal });
    const made = await client.create(namespaceOf(labels), { signal });
    namespace = made.metadata.name;
    return await inNamespace(trial, namespace);
  } catch (error) {
    signal.throwIfAborted();
    return unknown(errorText(error));
  } finally {
    if (namespace !== undefined && !signal.aborted) await client.delete(NAMESPACES, namespace).catch(() => {});
  }
}

const unknown = (because: string): TrialResult => ({ enforced: 'Unknown', because });

async function inNamespace({ client, signal }: Trial, namespace: string): Promise<TrialResult> {
  const pod = (name: string) => client.get<Pod>(PODS, name, namespace, { signal });
  const isReady = async (name: string) => conditionIsTrue(await pod(name), 'Ready');
  /** Whether the state was reached in time. */
  const within = async (ms: number, holds: () => Promise<boolean>): Promise<boolean> => {
    for (const deadline = performance.now() + ms; performance.now() < deadline; ) {
      if (await holds()) return true;
      await sleep(LOOK_MS, signal);
    }
    return false;
  };
  await client.create(server(namespace), { signal });
  if (!(await within(START_MS, () => isReady(SERVER))))
    return unknown(`pod ${namespace}/${SERVER} did not become Ready`);
  const address = (await pod(SERVER)).status?.podIP ?? '';
  await client.create(caller(namespace, address), { signal });
  if (!(await within(START_MS, () => isReady(CALLER))))
    return unknown(`pod ${namespace}/${CALLER} did not reach ${SERVER} while nothing forbade it`);
  await client.create(forbidding(namespace), { signal });
  if (!(await within(HOLD_MS, async () => !(await isReady(CALLER))))) return { enforced: false };
  await client.delete(NETWORKPOLICIES, POLICY, namespace, { signal });
  // Silence for another reason proves nothing.
  if (await within(HOLD_MS, async () => (await isReady(CALLER)) && (await isReady(SERVER)))) return { enforced: true };
  return unknown(`pod ${namespace}/${CALLER} did not reach ${SERVER} again when nothing forbade it any more`);
}

const selectorOf = (labels: Record<string, string>): string =>
  Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(',');

const namespaceOf = (labels: Record<string, string>): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: {
    name: '',
    generateName: 'coppice-network-trial-',
    labels: { ...labels, ...podSecurityLabels('restricted') },
  } as KubeObject['metadata'],
});

/** Uses etcd's image, which every seed needs anyway. */
const server = (namespace: string): KubeObject =>
  podOf(namespace, SERVER, [
    '--data-dir=/tmp/data',
    `--listen-client-urls=http://0.0.0.0:${ETCD_CLIENT_PORT}`,
    `--advertise-client-urls=http://127.0.0.1:${ETCD_CLIENT_PORT}`,
    '--listen-peer-urls=http://127.0.0.1:2380',
    '--log-level=error',
  ]);

/** Forwards connections to the server: kubelet's probe succeeds when the server is reachable from this pod. */
const caller = (namespace: string, address: string): KubeObject =>
  podOf(namespace, CALLER, [
    'gateway',
    'start',
    `--listen-addr=0.0.0.0:${ETCD_CLIENT_PORT}`,
    `--endpoints=${address}:${ETCD_CLIENT_PORT}`,
    '--retry-delay=1s',
  ]);

const podOf = (namespace: string, name: string, args: string[]): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace, labels: { app: name, [LABELS.managedBy]: FIELD_MANAGER } },
  spec: {
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    dnsPolicy: 'Default',
    terminationGracePeriodSeconds: 0,
    securityContext: asNobody({ fsGroup: NOBODY }),
    containers: [
      {
        name,
        image: ETCD_IMAGE,
        imagePullPolicy: 'IfNotPresent',
        command: ['/usr/local/bin/etcd'],
        args,
        ports: [{ name: 'client', containerPort: ETCD_CLIENT_PORT }],
        resources: { requests: { cpu: '10m', memory: '32Mi' } },
        securityContext: UNPRIVILEGED,
        readinessProbe: httpProbe('/health', 'client', { period: 1, failures: 2, timeout: 1 }),
        volumeMounts: [{ name: 'data', mountPath: '/tmp' }],
      },
    ],
    volumes: [{ name: 'data', emptyDir: {} }],
  },
});

const forbidding = (namespace: string): NetworkPolicy => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name: POLICY, namespace },
  spec: { podSelector: { matchLabels: { app: SERVER } }, policyTypes: ['Ingress'] },
});
