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
 * The agents of the tunnel: they connect to the API servers' pods, which then reach the cluster through them. Also what lets the servers
 * find out that an agent is one. Another number of API servers makes other pods: an agent asks only servers that it meets anew for it.
 * `replicas` 1 for clusters of one node, otherwise 2.
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

/** The command line of an agent. `host`: where the API servers are reached from outside of their seed. */
const konnectivityAgentArguments = (host: string, directory = FILES): string[] => [
  `--proxy-server-host=${host}`,
  `--proxy-server-port=${KONNECTIVITY_PORT}`,
  `--ca-cert=${directory}/ca.crt`,
  `--service-account-token-path=${directory}/token`,
  `--admin-server-port=${ADMIN_PORT}`,
  `--health-server-port=${HEALTH_PORT}`,
  // NAT and load balancers forget connections that are silent for some minutes, and tell nobody.
  '--keepalive-time=60s',
  // Its own default writes a line each second.
  '--v=1',
];

/** In the pods' network and not in the host's: there it could reach a cloud's metadata, from which pods are kept. */
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
          // Its resolver is the machine's, which knows the names of webhooks. Told to end, it serves the connections that it has for all of
          // its grace period.
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
              // Ready is who is connected.
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
