import { dump } from 'js-yaml';
import { ANNOTATIONS, FIELD_MANAGER, LABELS, ROLES } from '../../operator/api/group.ts';
import type { KubeObject } from '../../operator/api/meta.ts';
import { shortHash } from '../../operator/api/names.ts';
import { asNobody, NOBODY, UNPRIVILEGED } from '../../operator/kube/pod-security.ts';
import type { ProviderContext } from '../contract.ts';

/** Annotation of nodes that kwok manages. */
export const KWOK_ANNOTATION = { 'kwok.x-k8s.io/node': 'simulated' };
/**
 * RFC 3339, on a Node: when its machine is up. kwok ignores the node until then, so the wait survives a crash of the
 * operator.
 */
export const READY_AT_ANNOTATION = 'multi-cluster.demo.io/simulated-ready-at';
/** Deployment and Secret beside the control plane. */
const KWOK = 'kwok';
const VERSION = '0.8.0';
const KWOK_IMAGE = `registry.k8s.io/kwok/kwok:v${VERSION}`;

/**
 * Heartbeat of nodes. The controller manager gives a node up after 50 s of silence. No leases: kwok's holder name
 * changes on each start, so after a crash nodes would be unmanaged, and become NotReady, until their leases expire.
 */
const HEARTBEAT_MS = { least: 25_000, most: 35_000 };

const stage = (name: string, kind: 'Node' | 'Pod', spec: object): object => ({
  apiVersion: 'kwok.x-k8s.io/v1alpha1',
  kind: 'Stage',
  metadata: { name },
  spec: { resourceRef: { apiGroup: 'v1', kind }, ...spec },
});

const expression = (
  key: string,
  operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist',
  ...values: string[]
): object => ({
  key,
  operator,
  ...(values.length > 0 && { values }),
});

const statusOfCondition = (type: string): string => `.status.conditions.[] | select( .type == "${type}" ) | .status`;
const READY = statusOfCondition('Ready');
const ALIVE = expression('.metadata.deletionTimestamp', 'DoesNotExist');
const DELETED = expression('.metadata.deletionTimestamp', 'Exists');

const nodeConditions: [type: string, status: string, reason: string][] = [
  ['Ready', 'True', 'KubeletReady'],
  ['MemoryPressure', 'False', 'KubeletHasSufficientMemory'],
  ['DiskPressure', 'False', 'KubeletHasNoDiskPressure'],
  ['PIDPressure', 'False', 'KubeletHasSufficientPID'],
];

const NODE_READY = `
{{ $now := Now }}
conditions:
${nodeConditions
  .map(
    ([type, status, reason]) =>
      `- {type: ${type}, status: "${status}", reason: ${reason}, message: simulated, lastHeartbeatTime: {{ $now | Quote }}, lastTransitionTime: {{ $now | Quote }}}`,
  )
  .join('\n')}
phase: Running
`;

const podConditions = ['Initialized', 'PodReadyToStartContainers', 'ContainersReady', 'Ready'];

const POD_RUNNING = `
{{ $now := Now }}
phase: Running
startTime: {{ $now | Quote }}
conditions:
${podConditions.map((type) => `- {type: ${type}, status: "True", lastTransitionTime: {{ $now | Quote }}}`).join('\n')}
{{ range .spec.readinessGates }}
- {type: {{ .conditionType | Quote }}, status: "True", lastTransitionTime: {{ $now | Quote }}}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: true
  started: true
  restartCount: 0
  state: {running: {startedAt: {{ $now | Quote }}}}
{{ end }}
{{ if .spec.initContainers }}
initContainerStatuses:
{{ range .spec.initContainers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: true
  restartCount: 0
  {{ if eq .restartPolicy "Always" }}
  started: true
  state: {running: {startedAt: {{ $now | Quote }}}}
  {{ else }}
  state: {terminated: {exitCode: 0, reason: Completed, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }}}}
  {{ end }}
{{ end }}
{{ end }}
{{ with NodeIPsWith .spec.nodeName }}
hostIP: {{ index . 0 | Quote }}
hostIPs: [{ip: {{ index . 0 | Quote }}}]
{{ end }}
{{ with PodIPsWith .spec.nodeName ( or .spec.hostNetwork false ) ( or .metadata.uid "" ) ( or .metadata.name "" ) ( or .metadata.namespace "" ) }}
podIP: {{ index . 0 | Quote }}
podIPs: [{ip: {{ index . 0 | Quote }}}]
{{ end }}
`;

const JOB_DONE = `
{{ $now := Now }}
phase: Succeeded
conditions:
- {type: Ready, status: "False", reason: PodCompleted, lastTransitionTime: {{ $now | Quote }}}
- {type: ContainersReady, status: "False", reason: PodCompleted, lastTransitionTime: {{ $now | Quote }}}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: false
  started: false
  restartCount: 0
  state: {terminated: {exitCode: 0, reason: Completed, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }}}}
{{ end }}
`;

/** kwok's configuration file (YAML): behaviour of simulated nodes and their pods. */
export function kwokConfiguration(podCIDR: string): string {
  const annotation = Object.entries(KWOK_ANNOTATION)
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
  const documents: object[] = [
    {
      apiVersion: 'config.kwok.x-k8s.io/v1alpha1',
      kind: 'KwokConfiguration',
      options: {
        // For pods on a node without a range yet; usually the controller manager assigns one.
        cidr: podCIDR,
        manageNodesWithAnnotationSelector: annotation,
        nodeLeaseDurationSeconds: 0,
        // These have no defaults with a configuration file.
        nodeLeaseParallelism: 1,
        nodePlayStageParallelism: 4,
        podPlayStageParallelism: 4,
        podsOnNodeSyncParallelism: 1,
        enableDebuggingHandlers: false,
        enablePodsOnNodeSyncListPager: false,
        enablePodsOnNodeSyncStreamWatch: true,
      },
    },
    stage('node-ready', 'Node', {
      selector: { matchExpressions: [ALIVE, expression(READY, 'NotIn', 'True')] },
      // A past time, or a missing annotation, means no delay.
      delay: { durationFrom: { jq: { expression: `.metadata.annotations["${READY_AT_ANNOTATION}"]` } } },
      next: { statusTemplate: NODE_READY },
    }),
    stage('node-heartbeat', 'Node', {
      selector: { matchExpressions: [ALIVE, expression(READY, 'In', 'True')] },
      delay: { durationMilliseconds: HEARTBEAT_MS.least, jitterDurationMilliseconds: HEARTBEAT_MS.most },
      next: { statusTemplate: 'conditions:\n- {type: Ready, lastHeartbeatTime: {{ Now | Quote }}}\n' },
    }),
    stage('pod-running', 'Pod', {
      selector: { matchExpressions: [ALIVE, expression('.status.phase', 'In', 'Pending')] },
      next: { statusTemplate: POD_RUNNING },
    }),
    stage('pod-of-job-succeeded', 'Pod', {
      selector: {
        matchExpressions: [
          ALIVE,
          expression('.status.phase', 'In', 'Running'),
          expression('.metadata.ownerReferences.[].kind', 'In', 'Job'),
        ],
      },
      delay: { durationMilliseconds: 1000 },
      next: { statusTemplate: JOB_DONE },
    }),
    // The controller manager sets only Ready to false on pods of a silent node, as after an outage of the API server. A
    // returning kubelet sets it again.
    stage('pod-ready-again', 'Pod', {
      selector: {
        matchExpressions: [
          ALIVE,
          expression('.status.phase', 'In', 'Running'),
          expression(statusOfCondition('ContainersReady'), 'In', 'True'),
          expression(READY, 'In', 'False'),
        ],
      },
      next: {
        statusTemplate: 'conditions:\n- {type: Ready, status: "True", lastTransitionTime: {{ Now | Quote }}}\n',
      },
    }),
    stage('pod-gone', 'Pod', { selector: { matchExpressions: [DELETED] }, next: { delete: true } }),
  ];
  return documents.map((document) => dump(document, { lineWidth: -1, noRefs: true })).join('---\n');
}

/** Secret and Deployment of kwok, in the shoot's namespace of the seed. */
export function kwokObjects(
  ctx: Pick<ProviderContext, 'namespace' | 'podCIDR' | 'shootName' | 'shootNamespace'>,
  kubeconfig: string,
): KubeObject[] {
  const files = { 'kwok.yaml': kwokConfiguration(ctx.podCIDR), kubeconfig };
  const labels = {
    [LABELS.shoot]: ctx.shootName,
    [LABELS.shootNamespace]: ctx.shootNamespace,
    [LABELS.role]: ROLES.controlPlane,
    [LABELS.managedBy]: FIELD_MANAGER,
    app: KWOK,
  };
  const metadata = { name: KWOK, namespace: ctx.namespace, labels };
  return [
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata,
      type: 'Opaque',
      data: Object.fromEntries(
        Object.entries(files).map(([name, text]) => [name, Buffer.from(text).toString('base64')]),
      ),
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: {
        replicas: 1,
        revisionHistoryLimit: 1,
        strategy: { type: 'Recreate' },
        selector: { matchLabels: { app: KWOK, [LABELS.shoot]: ctx.shootName } },
        template: {
          metadata: { labels, annotations: { [ANNOTATIONS.checksum]: shortHash(JSON.stringify(files)) } },
          spec: {
            automountServiceAccountToken: false,
            dnsPolicy: 'Default',
            enableServiceLinks: false,
            // kwok has nothing to finish.
            terminationGracePeriodSeconds: 0,
            securityContext: asNobody({ fsGroup: NOBODY }),
            containers: [
              {
                name: KWOK,
                image: KWOK_IMAGE,
                imagePullPolicy: 'IfNotPresent',
                args: [
                  '--config=/etc/kwok/kwok.yaml',
                  '--kubeconfig=/etc/kwok/kubeconfig',
                  '--node-port=0',
                  '--v=WARN',
                ],
                env: [
                  { name: 'GOGC', value: '50' },
                  { name: 'HOME', value: '/' },
                ],
                resources: { requests: { cpu: '10m', memory: '32Mi' } },
                securityContext: UNPRIVILEGED,
                volumeMounts: [{ name: 'config', mountPath: '/etc/kwok', readOnly: true }],
              },
            ],
            // 0440: the files belong to root, and are read through fsGroup.
            volumes: [{ name: 'config', secret: { secretName: KWOK, defaultMode: 0o440 } }],
          },
        },
      },
    },
  ];
}
