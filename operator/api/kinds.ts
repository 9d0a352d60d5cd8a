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
