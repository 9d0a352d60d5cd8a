import type { ControlPlane } from './values.ts';

const FILE = 'audit-policy.json';

/** What components and kubelets do all the time. */
const COMPONENT_USERS = [
  'system:apiserver',
  'system:kube-controller-manager',
  'system:kube-scheduler',
  'system:kube-proxy',
];
const READ = ['get', 'list', 'watch'];
/** What kubelets read in turn; not Secrets and ConfigMaps, whose reads are of interest. */
const READ_BY_KUBELETS = ['nodes', 'pods', 'services'];

/**
 * Who did what, when and from where: never what was in it, which may be a Secret. Left out is what clusters do by themselves many times a
 * second, and would push all else out of a log that has an end.
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
 * What API servers have of the audit log, where it is wanted: a file, and the flags that name it, without their dashes. It goes to standard
 * output, of which the kubelet keeps so much as it keeps of any pod, and where the seed's collector of logs finds it.
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
