import { API_VERSION, GROUP } from '../api/group.ts';
import {
  BURSTPOLICIES,
  CLOUDPROFILES,
  CREDENTIALSBINDINGS,
  HUBS,
  MEMBERSHIPS,
  QUOTAS,
  type Resource,
  SEEDS,
  SHOOTS,
  WORKERCLUSTERS,
  WORKLOADIDENTITIES,
} from '../kube/resources.ts';

/** A kind that the CLI knows, with its names. */
export interface CliKind {
  resource: Resource;
  aliases: readonly string[];
}

export const WORKER_CLUSTER_KIND: CliKind = {
  resource: WORKERCLUSTERS,
  aliases: ['workercluster', 'wc', 'cluster', 'clusters'],
};
export const SHOOT_KIND: CliKind = { resource: SHOOTS, aliases: ['shoot'] };
export const SEED_KIND: CliKind = { resource: SEEDS, aliases: ['seed'] };
const CLOUD_PROFILE: CliKind = {
  resource: CLOUDPROFILES,
  aliases: ['cloudprofile', 'cprofile', 'cprofiles', 'profile', 'profiles'],
};
const CREDENTIALS_BINDING: CliKind = {
  resource: CREDENTIALSBINDINGS,
  aliases: ['credentialsbinding', 'cb', 'binding', 'bindings'],
};
const WORKLOAD_IDENTITY: CliKind = { resource: WORKLOADIDENTITIES, aliases: ['workloadidentity', 'wi'] };
export const QUOTA_KIND: CliKind = { resource: QUOTAS, aliases: ['quota'] };

export const HUB_KIND: CliKind = { resource: HUBS, aliases: ['hub'] };
export const MEMBERSHIP_KIND: CliKind = { resource: MEMBERSHIPS, aliases: ['membership'] };
export const BURST_POLICY: CliKind = { resource: BURSTPOLICIES, aliases: ['burstpolicy', 'bp'] };

export const CLI_KINDS: readonly CliKind[] = [
  WORKER_CLUSTER_KIND,
  SHOOT_KIND,
  SEED_KIND,
  CLOUD_PROFILE,
  CREDENTIALS_BINDING,
  WORKLOAD_IDENTITY,
  QUOTA_KIND,
  HUB_KIND,
  MEMBERSHIP_KIND,
  BURST_POLICY,
];

/** The kind with this name, plural, short name or `plural.group`; case is ignored. */
export function kindOf(word: string): CliKind | undefined {
  const name = word.toLowerCase().replace(`.${GROUP}`, '');
  return CLI_KINDS.find(
    ({ resource, aliases }) =>
      resource.plural === name || resource.kind.toLowerCase() === name || aliases.includes(name),
  );
}

/** All names of kinds, for suggestions. */
export function kindWords(): string[] {
  return CLI_KINDS.flatMap(({ resource, aliases }) => [resource.plural, ...aliases]);
}

/** `apiVersion` of Coppice's kinds. */
export const CLI_API_VERSION = API_VERSION;
