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
import { kubeconfig } from '../../pki/kubeconfig.ts';
import type { Member, Wanted } from '../contract.ts';
import { accountName, MANAGE_RULES } from '../rights.ts';

const RBAC = 'rbac.authorization.k8s.io';
const ACCESS = '/etc/karmada';
const HEALTH_PORT = 10357;

/**
 * karmada-agent in a member, and what it needs there: it applies whatever people propagate, of any kind. Its way into the hub is a token in a
 * file that it reads again each minute, so that a new one needs no restart.
 * @param token of the agent in the hub. @param namespace where it is to be in the member, which is there already
 */
export function agent(
  member: Member,
  spec: HubSpec,
  { token, namespace }: { token: string; namespace: string },
): Wanted[] {
  const account = accountName(member);
  const name = `${account}-agent`;
  const labels = { app: 'karmada-agent', 'karmada-hub': member.hubName };
  const { server, ca = '', proxyURL } = member.hub;
  const access = kubeconfig({ server, ca, proxyURL, tokenFile: 'token', name: 'karmada', user: 'karmada-agent' });
  const wanted = (
    resource: Resource,
    apiVersion: string,
    object: Record<string, unknown> & Pick<KubeObject, 'metadata'>,
  ): Wanted => ({
    on: 'member',
    resource,
    object: { apiVersion, kind: resource.kind, ...object },
  });
  const metadata = { name: account };
  return [
    wanted(SERVICEACCOUNTS, 'v1', { metadata: { ...metadata, namespace } }),
    wanted(CLUSTERROLES, `${RBAC}/v1`, { metadata, rules: structuredClone(MANAGE_RULES) }),
    wanted(CLUSTERROLEBINDINGS, `${RBAC}/v1`, {
      metadata,
      roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: account },
      subjects: [{ kind: 'ServiceAccount', name: account, namespace }],
    }),
    wanted(SECRETS, 'v1', {
      metadata: { name, namespace },
      type: 'Opaque',
      data: { kubeconfig: base64(access), token: base64(token) },
    }),
    wanted(DEPLOYMENTS, 'apps/v1', {
      metadata: { name, namespace, labels },
      spec: {
        // One, which elects nobody: two at a time would both apply.
        replicas: 1,
        strategy: { type: 'Recreate' },
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: podOf(member, spec, { account, secret: name, namespace }) },
      },
    }),
  ];
}

function podOf(
  { name, endpoint }: Member,
  spec: HubSpec,
  { account, secret, namespace }: { account: string; secret: string; namespace: string },
) {
  return {
    serviceAccountName: account,
    priorityClassName: 'system-cluster-critical',
    containers: [
      {
        name: 'karmada-agent',
        image: spec.member?.agentImage,
        command: [
          '/bin/karmada-agent',
          `--karmada-kubeconfig=${ACCESS}/kubeconfig`,
          `--cluster-name=${name}`,
          `--cluster-api-endpoint=${endpoint.server}`,
          `--cluster-namespace=${namespace}`,
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
    volumes: [{ name: 'access', secret: { secretName: secret } }],
  };
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');
