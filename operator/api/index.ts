import { burstPolicyDefinition } from './burstpolicy.ts';
import { cloudProfileDefinition } from './cloudprofile.ts';
import { credentialsBindingDefinition } from './credentialsbinding.ts';
import { hubDefinition } from './hub.ts';
import { membershipDefinition } from './membership.ts';
import { quotaDefinition } from './quota.ts';
import type { KindDefinition } from './schema.ts';
import { seedDefinition } from './seed.ts';
import { shootDefinition } from './shoot-definition.ts';
import { workerClusterDefinition } from './workercluster-definition.ts';
import { workloadIdentityDefinition } from './workloadidentity.ts';

/** Every kind of the API group. */
export const KINDS: readonly KindDefinition[] = [
  workerClusterDefinition,
  shootDefinition,
  seedDefinition,
  cloudProfileDefinition,
  credentialsBindingDefinition,
  workloadIdentityDefinition,
  quotaDefinition,
  hubDefinition,
  membershipDefinition,
  burstPolicyDefinition,
];

export * from './burstpolicy.ts';
export * from './burstpolicy-status.ts';
export * from './cloudprofile.ts';
export * from './conditions.ts';
export * from './cost.ts';
export * from './credentialsbinding.ts';
export * from './errors.ts';
export * from './group.ts';
export * from './hub.ts';
export * from './maintenance.ts';
export * from './membership.ts';
export type * from './meta.ts';
export * from './names.ts';
export * from './pools.ts';
export * from './quantity.ts';
export * from './quota.ts';
export type { KindDefinition, PrinterColumn, Rule } from './schema.ts';
export * from './seed.ts';
export * from './shoot.ts';
export * from './worker-pool.ts';
export * from './workercluster.ts';
export * from './workercluster-definition.ts';
export * from './workloadidentity.ts';
