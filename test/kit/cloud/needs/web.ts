/** Services of AWS whose requests name their permission. */
const NAMED = ['ec2', 'autoscaling', 'elasticloadbalancing', 'iam', 'kms'];

const EKS: readonly [path: RegExp, permission: string][] = [
  [/\/node-groups$/, 'ListNodegroups'],
  [/\/node-groups\/[^/]+$/, 'DescribeNodegroup'],
  [/\/addons\/[^/]+$/, 'DescribeAddon'],
  [/\/access-entries\/[^/]+\/access-policies$/, 'ListAssociatedAccessPolicies'],
  [/\/access-entries\/[^/]+$/, 'DescribeAccessEntry'],
  [/^\/clusters\/[^/]+$/, 'DescribeCluster'],
];

/** Permissions of a request to AWS. Whoever may not ask IAM what they may do is not refused for that. */
export function neededAtAWS(service: string, action: string, path: string): readonly string[] {
  if (service === 'tagging') return ['tag:GetResources'];
  if (service === 'eks')
    return EKS.filter(([at]) => at.test(path))
      .slice(0, 1)
      .map(([, name]) => `eks:${name}`);
  if (!NAMED.includes(service) || action === 'SimulatePrincipalPolicy') return [];
  return [`${service}:${action.split('.').at(-1)}`];
}

/** Permissions of a request to Google Cloud by its path, without version; the first that matches. */
const GOOGLE: readonly [path: RegExp, permission: string | ((match: RegExpExecArray) => string)][] = [
  [/:testIamPermissions$/, ''],
  [/:searchAllResources$/, 'cloudasset.assets.searchAllResources'],
  [/\/cryptoKeys\/[^/]+:getIamPolicy$/, 'cloudkms.cryptoKeys.getIamPolicy'],
  [/^projects\/[^/]+:getIamPolicy$/, 'resourcemanager.projects.getIamPolicy'],
  [/\/aggregated\/instances$/, 'compute.instances.list'],
  [/\/instanceGroupManagers\/[^/]+\/deleteInstances$/, 'compute.instanceGroupManagers.update'],
  [/\/instanceGroupManagers\//, 'compute.instanceGroupManagers.get'],
  [/\/(zone|region)s\/[^/]+\/operations\//, ([, where]) => `compute.${where}Operations.get`],
  [
    /\/global\/(addresses|forwardingRules)\//,
    ([, kind = '']) => `compute.global${kind[0]?.toUpperCase()}${kind.slice(1)}.get`,
  ],
  [/\/(?:global|regions\/[^/]+)\/([A-Za-z]+)\/[^/]+$/, ([, kind]) => `compute.${kind}.get`],
  [/\/locations\/[^/]+\/clusters\//, 'container.clusters.get'],
  [/\/cryptoKeys\/[^/]+$/, 'cloudkms.cryptoKeys.get'],
  [/\/keyRings\/[^/]+$/, 'cloudkms.keyRings.get'],
  [/\/serviceAccounts\/[^/]+$/, 'iam.serviceAccounts.get'],
];

/** See GOOGLE. */
export function neededAtGoogle(path: string): readonly string[] {
  for (const [pattern, permission] of GOOGLE) {
    const match = pattern.exec(path);
    if (match) return [typeof permission === 'string' ? permission : permission(match)].filter((name) => name !== '');
  }
  return [];
}

/** Namespaces of Azure that Coppice's lists say nothing of: buckets, and zones of DNS. */
const ELSEWHERE = /\/providers\/Microsoft\.(?:Storage|Network\/(?:dnsZones|privateDnsZones))/i;

/** Permissions of a request to Azure Resource Manager: its path names the operation. */
export function neededAtAzure(method: string, path: string): readonly string[] {
  if (path === '/providers/Microsoft.ResourceGraph/resources') return ['Microsoft.ResourceGraph/resources/read'];
  if (!path.startsWith('/subscriptions/') || ELSEWHERE.test(path)) return [];
  const provider = /^.*\/providers\/([^/]+)\/(.+)$/.exec(path);
  if (!provider) {
    const inGroup = /^\/subscriptions\/[^/]+(\/resourceGroups\/[^/]+)?(\/resources)?$/i.exec(path);
    const [, group, resources] = inGroup ?? [];
    const within = `${group ? '/resourceGroups' : ''}${resources ?? ''}`;
    return [`Microsoft.Resources/subscriptions${within}/read`];
  }
  const [, namespace, rest = ''] = provider;
  const words = rest.split('/');
  const types = words.filter((_, index) => index % 2 === 0);
  if (method !== 'POST') return [`${namespace}/${types.join('/')}/read`];
  return [`${namespace}/${types.join('/')}/action`];
}
