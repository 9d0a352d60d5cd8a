import type { ControlPlane } from './values.ts';

const FILE = 'audit-policy.json';

/** Users of components and kubelets. */
const COMPONENT_USERS = [
  'system:apiserver',
  'system:kube-controller-manager',
  'system:kube-scheduler',
  'system:kube-proxy',
];
const READ = ['get', 'list', 'watch'];
/** Resources that kubelets read continuously; without Secrets and ConfigMaps, whose reads are audited. */
const READ_BY_KUBELETS = ['nodes', 'pods', 'services'];

/**
 * Audit policy: who did what, when and from where, without bodies, which may be Secrets. Routine requests of components
 * are omitted: they come many times a second and would push everything else out of a bounded log.
 */
const POLICY = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [
    { level: 'None', nonResourceURLs: ['/healthz*', '/livez*', '/readyz*'] },
    {
      level: 'None',
      resources: [
        { group: '', resources: ['events'] },
        { group: 'events.k8s.io', resources: ['events'] },
        { group: 'coordination.k8s.io', resources: ['leases'] },
      ],
    },
    { level: 'None', users: COMPONENT_USERS, verbs: READ },
    {
      level: 'None',
      userGroups: ['system:nodes'],
      verbs: READ,
      resources: [{ group: '', resources: READ_BY_KUBELETS }],
    },
    { level: 'Metadata' },
  ],
};

/**
 * The API server's audit policy file and flags (without dashes), where an audit log is enabled. The log goes to
 * standard output, which the kubelet rotates as for any pod and the seed's log collector reads.
 */
export function auditParts(
  { auditLog }: Pick<ControlPlane, 'auditLog'>,
  directory: string,
): { flags: Record<string, string>; files: Record<string, string> } {
  if (!auditLog) return { flags: {}, files: {} };
  return {
    flags: { 'audit-policy-file': `${directory}/${FILE}`, 'audit-log-path': '-' },
    files: { [FILE]: JSON.stringify(POLICY) },
  };
}
