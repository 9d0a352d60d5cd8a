import type { Attempt, Properties } from '../model.ts';

/** What Google calls a type, and how its ids look. */
export interface Kind {
  /** First word of its permissions and of its host name. */
  service: string;
  collection: string;
  noun: string;
  /** With {project}, {region}, {location}, {name} and names of inputs. */
  id: string;
  /** The id as far as it can be told before anything is made. */
  idFromName(attempt: Attempt): string;
}

/** Ids: @pulumi/gcp's own texts, "can be imported using". */
const KINDS: Readonly<Record<string, readonly [service: string, noun: string, id: string]>> = {
  'gcp:compute:Network': ['compute', 'Network', 'projects/{project}/global/networks/{name}'],
  'gcp:compute:Subnetwork': ['compute', 'Subnetwork', 'projects/{project}/regions/{region}/subnetworks/{name}'],
  'gcp:compute:Router': ['compute', 'Router', 'projects/{project}/regions/{region}/routers/{name}'],
  'gcp:compute:RouterNat': ['compute', 'RouterNat', '{project}/{region}/{router}/{name}'],
  'gcp:compute:Firewall': ['compute', 'Firewall', 'projects/{project}/global/firewalls/{name}'],
  'gcp:compute:Address': ['compute', 'Address', 'projects/{project}/regions/{region}/addresses/{name}'],
  'gcp:compute:GlobalAddress': ['compute', 'GlobalAddress', 'projects/{project}/global/addresses/{name}'],
  'gcp:compute:HealthCheck': ['compute', 'HealthCheck', 'projects/{project}/global/healthChecks/{name}'],
  'gcp:compute:BackendService': ['compute', 'BackendService', 'projects/{project}/global/backendServices/{name}'],
  'gcp:compute:TargetTCPProxy': ['compute', 'TargetTcpProxy', 'projects/{project}/global/targetTcpProxies/{name}'],
  'gcp:compute:GlobalForwardingRule': [
    'compute',
    'GlobalForwardingRule',
    'projects/{project}/global/forwardingRules/{name}',
  ],
  'gcp:compute:InstanceTemplate': ['compute', 'InstanceTemplate', 'projects/{project}/global/instanceTemplates/{name}'],
  'gcp:compute:RegionInstanceTemplate': [
    'compute',
    'RegionInstanceTemplate',
    'projects/{project}/regions/{region}/instanceTemplates/{name}',
  ],
  'gcp:compute:InstanceGroupManager': [
    'compute',
    'InstanceGroupManager',
    'projects/{project}/zones/{zone}/instanceGroupManagers/{name}',
  ],
  'gcp:compute:RegionInstanceGroupManager': [
    'compute',
    'RegionInstanceGroupManager',
    'projects/{project}/regions/{region}/instanceGroupManagers/{name}',
  ],
  'gcp:compute:RegionAutoscaler': [
    'compute',
    'RegionAutoscaler',
    'projects/{project}/regions/{region}/autoscalers/{name}',
  ],
  'gcp:container:Cluster': ['container', 'Cluster', 'projects/{project}/locations/{location}/clusters/{name}'],
  'gcp:container:NodePool': ['container', 'NodePool', '{project}/{location}/{cluster}/{name}'],
  'gcp:serviceaccount:Account': ['iam', 'ServiceAccount', 'projects/{project}/serviceAccounts/{email}'],
  'gcp:projects:IAMMember': ['resourcemanager', 'IAMMember', '{project}/{role}/{member}'],
  'gcp:kms:KeyRing': ['cloudkms', 'KeyRing', 'projects/{project}/locations/{location}/keyRings/{name}'],
  'gcp:kms:CryptoKey': ['cloudkms', 'CryptoKey', '{keyRing}/cryptoKeys/{name}'],
  'gcp:kms:CryptoKeyIAMMember': ['cloudkms', 'CryptoKeyIAMMember', '{cryptoKeyId}/{role}/{member}'],
  'gcp:storage:Bucket': ['storage', 'Bucket', '{name}'],
};

export const KIND_TYPES: readonly string[] = Object.keys(KINDS);

/** Fills in an id. */
export const fill = (pattern: string, values: Properties): string =>
  pattern.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? `{${name}}`));

/** The type's entry, or what can be told of an unknown type by its name. */
export function kindOf(type: string): Kind {
  const [, module = '', object = ''] = type.split(':');
  const plural = `${object[0]?.toLowerCase() ?? ''}${object.slice(1)}s`;
  const [service, noun, id] = KINDS[type] ?? [module, object, `projects/{project}/${plural}/{name}`];
  const collection = service === 'container' ? plural : (/\/(\w+)\/\{name\}$/.exec(id)?.[1] ?? plural);
  return {
    service,
    noun,
    id,
    collection,
    idFromName: ({ name, region, caller }) =>
      name.includes('/') ? name : fill(id, { project: caller?.account, region, location: region, name }),
  };
}
