import type { HubSpec } from '../../api/hub.ts';
import {
  CLUSTERROLEBINDINGS,
  CLUSTERROLES,
  DEPLOYMENTS,
  type KubeObject,
  type Resource,
  SECRETS,
  SERVICEACCOUNTS,
} from '../../kube/resources.ts';
import { writeKubeconfigText } from '../../pki/kubeconfig.ts';
import type { Member, WantedObject } from '../contract.ts';
import { accountName, MANAGE_RULES } from '../rights.ts';

const RBAC = 'rbac.authorization.k8s.io';
const ACCESS = '/etc/karmada';
const HEALTH_PORT = 10357;

/** Exists in every cluster; tenants of the hub write nothing there. */
export const KUBE_SYSTEM = 'kube-system';

const agentName = (member: Member): string => `${accountName(member)}-agent`;

function wanted(
  resource: Resource,
  apiVersion: string,
  object: Record<string, unknown> & Pick<KubeObject, 'metadata'>,
): WantedObject {
  return { on: 'member', resource, object: { apiVersion, kind: resource.kind, ...object } };
}

/** The agent's access to the hub: it rereads its token file every minute, so a renewed token needs no restart. */
export function agentAccess(member: Member, token: string): WantedObject {
  const { server, ca = '', proxyURL } = member.hub;
  const access = writeKubeconfigText({
    server,
    ca,
    proxyURL,
    tokenFile: `${ACCESS}/token`,
    name: 'karmada',
    user: 'karmada-agent',
  });
  return wanted(SECRETS, 'v1', {
    metadata: { name: agentName(member), namespace: KUBE_SYSTEM },
    type: 'Opaque',
    data: { kubeconfig: base64(access), token: base64(token) },
  });
}

/** karmada-agent in a member, with its rights there: it applies propagated objects of any kind. */
export function agentManifests(member: Member, spec: HubSpec): WantedObject[] {
  const account = accountName(member);
  const namespace = KUBE_SYSTEM;
  const labels = { app: 'karmada-agent', 'karmada-hub': member.hubName };
  const metadata = { name: account };
  return [
    wanted(SERVICEACCOUNTS, 'v1', { metadata: { ...metadata, namespace } }),
    wanted(CLUSTERROLES, `${RBAC}/v1`, { metadata, rules: structuredClone(MANAGE_RULES) }),
    wanted(CLUSTERROLEBINDINGS, `${RBAC}/v1`, {
      metadata,
      roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: account },
      subjects: [{ kind: 'ServiceAccount', name: account, namespace }],
    }),
    wanted(DEPLOYMENTS, 'apps/v1', {
      metadata: { name: agentName(member), namespace, labels },
      spec: {
        // A single replica without leader election: two would both apply.
        replicas: 1,
        strategy: { type: 'Recreate' },
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: podOf(member, spec) },
      },
    }),
  ];
}

function podOf(member: Member, spec: HubSpec) {
  return {
    serviceAccountName: accountName(member),
    priorityClassName: 'system-cluster-critical',
    containers: [
      {
        name: 'karmada-agent',
        image: spec.member?.agentImage,
        command: [
          '/bin/karmada-agent',
          `--karmada-kubeconfig=${ACCESS}/kubeconfig`,
          `--cluster-name=${member.name}`,
          `--cluster-api-endpoint=${member.endpoint.server}`,
          // The agent looks for this namespace on both sides, and creates it when missing.
          `--cluster-namespace=${KUBE_SYSTEM}`,
          '--report-secrets=None',
          '--leader-elect=false',
          '--metrics-bind-address=0',
          `--health-probe-bind-address=0.0.0.0:${HEALTH_PORT}`,
        ],
        resources: { requests: { cpu: '50m', memory: '64Mi' } },
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
        livenessProbe: {
          httpGet: { path: '/healthz', port: HEALTH_PORT, scheme: 'HTTP' },
          initialDelaySeconds: 15,
          periodSeconds: 15,
          timeoutSeconds: 5,
        },
        volumeMounts: [{ name: 'access', mountPath: ACCESS, readOnly: true }],
      },
    ],
    volumes: [{ name: 'access', secret: { secretName: agentName(member) } }],
  };
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');
