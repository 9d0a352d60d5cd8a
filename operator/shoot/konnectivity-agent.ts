import { ANNOTATIONS } from '../api/group.ts';
import type { KubeObject } from '../api/meta.ts';
import { asNobody, NOBODY, UNPRIVILEGED } from '../kube/pod-security.ts';
import { KONNECTIVITY_AGENT, KONNECTIVITY_AUDIENCE, serverCount } from './konnectivity-server.ts';
import { KONNECTIVITY_SERVER_USER } from './pki.ts';
import { apart, filesChecksum, httpProbe, SYSTEM_POD } from './pod.ts';
import { type ControlPlane, KONNECTIVITY_PORT } from './values.ts';
import { konnectivityImage } from './versions.ts';

const FILES = '/var/run/secrets/konnectivity';
const ADMIN_PORT = 8133;
const HEALTH_PORT = 8134;
const ROLE = 'coppice:konnectivity-server';
const namespace = 'kube-system';

/** Value of the label `k8s-app` of the agents' pods. */
export const KONNECTIVITY_AGENT_APP: string = KONNECTIVITY_AGENT;
const LABELS = { 'k8s-app': KONNECTIVITY_AGENT_APP };

/**
 * The tunnel's agents: they connect to the API servers' pods, which reach the cluster through them, with the rights by
 * which servers authenticate agents. Another number of API servers rolls the agents: an agent reads the number only
 * from newly met servers. `replicas` 1 for clusters of one node, otherwise 2.
 */
export function konnectivityAgent(values: Pick<ControlPlane, 'endpoint' | 'etcd'>, replicas: number): KubeObject[] {
  if (!values.endpoint) throw new Error('the API server has no endpoint that agents could connect to');
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: KONNECTIVITY_AGENT, namespace } },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: ROLE },
      rules: [{ apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'], verbs: ['create'] }],
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: ROLE },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: ROLE },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: KONNECTIVITY_SERVER_USER }],
    },
    deployment(
      konnectivityAgentArguments(values.endpoint.host),
      replicas,
      filesChecksum({ servers: `${serverCount(values)}` }),
    ),
  ];
}

/** Command line of an agent. `host`: address of the API servers from outside their seed. */
const konnectivityAgentArguments = (host: string, directory = FILES): string[] => [
  `--proxy-server-host=${host}`,
  `--proxy-server-port=${KONNECTIVITY_PORT}`,
  `--ca-cert=${directory}/ca.crt`,
  `--service-account-token-path=${directory}/token`,
  `--admin-server-port=${ADMIN_PORT}`,
  `--health-server-port=${HEALTH_PORT}`,
  // NAT and load balancers silently drop connections idle for some minutes.
  '--keepalive-time=60s',
  // The default level logs a line every second.
  '--v=1',
];

/**
 * On the pod network, not the host's: from the host it could reach the cloud's metadata service, which is blocked for
 * pods.
 */
function deployment(args: string[], replicas: number, print: string): KubeObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: KONNECTIVITY_AGENT, namespace, labels: LABELS },
    spec: {
      replicas,
      revisionHistoryLimit: 1,
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      selector: { matchLabels: LABELS },
      template: {
        metadata: { labels: LABELS, annotations: { [ANNOTATIONS.checksum]: print } },
        spec: {
          serviceAccountName: KONNECTIVITY_AGENT,
          automountServiceAccountToken: false,
          // It uses the machine's resolver, which knows the names of webhooks. After SIGTERM it keeps serving its
          // connections for the whole grace period.
          ...SYSTEM_POD,
          securityContext: asNobody({ fsGroup: NOBODY }),
          ...(replicas > 1 && { affinity: apart(LABELS) }),
          containers: [
            {
              name: KONNECTIVITY_AGENT,
              image: konnectivityImage('proxy-agent'),
              imagePullPolicy: 'IfNotPresent',
              command: ['/proxy-agent'],
              args,
              resources: { requests: { cpu: '5m', memory: '20Mi' }, limits: { memory: '170Mi' } },
              ports: [{ name: 'health', containerPort: HEALTH_PORT, protocol: 'TCP' }],
              // Ready means connected.
              readinessProbe: httpProbe('/readyz', 'health', { period: 2, failures: 3 }),
              livenessProbe: httpProbe('/healthz', 'health', { period: 10, failures: 6 }),
              securityContext: UNPRIVILEGED,
              volumeMounts: [{ name: 'files', mountPath: FILES, readOnly: true }],
            },
          ],
          volumes: [
            {
              name: 'files',
              projected: {
                defaultMode: 0o440,
                sources: [
                  { serviceAccountToken: { audience: KONNECTIVITY_AUDIENCE, expirationSeconds: 3600, path: 'token' } },
                  { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
                ],
              },
            },
          ],
        },
      },
    },
  };
}
