import { z } from 'zod';
import { commonStatus, type KubeObject } from './meta.ts';
import { type KindDefinition, LIMITS, labelName, list, name, objectName, PATTERNS, rules, text } from './schema.ts';

const reference = (what: string, kinds: readonly [string, ...string[]]) =>
  z.object({
    apiVersion: text(316, `apiVersion of the ${what}.`).optional(),
    kind: z.enum(kinds).describe(`Kind of the ${what}.`).optional(),
    namespace: labelName(`Namespace of the ${what}. Absent: that of the binding.`).optional(),
    name: objectName(`Name of the ${what}.`),
  });

export const credentialsBindingFields = rules(
  z.object({
    provider: z
      .object({
        type: name(LIMITS.label, 'Type of the provider, as in CloudProfiles. Cannot be changed.', PATTERNS.label),
      })
      .describe('Provider that the credentials belong to.'),
    credentialsRef: reference('credentials', ['Secret', 'WorkloadIdentity']).describe(
      'The credentials: a Secret or a WorkloadIdentity in the namespace of the binding. Changing it, or what the Secret holds, rotates the credentials of all clusters that use the binding, without touching the clusters.',
    ),
    quotas: list(
      reference('Quota', ['Quota']).describe('A Quota.'),
      16,
      'Quotas that clusters of these credentials count against. Kept but not acted on, which condition AllFieldsActedOn says: a Quota limits its own namespace. Cannot be changed.',
    ).optional(),
  }),
  {
    rule: 'self.provider.type == oldSelf.provider.type',
    message: 'provider.type cannot be changed after creation: make a new binding instead',
  },
  {
    rule: 'has(self.quotas) == has(oldSelf.quotas) && (!has(self.quotas) || self.quotas == oldSelf.quotas)',
    message: 'quotas cannot be changed after creation: make a new binding instead',
  },
).describe('Provider and credentials of the binding.');
/** Fields of a CredentialsBinding, which has no spec. */
type CredentialsBindingFields = z.output<typeof credentialsBindingFields>;

const credentialsBindingStatus = z
  .object({
    ...commonStatus,
    account: text(256, 'Account, project or subscription of the credentials, as the cloud says.').optional(),
  })
  .describe('State of the credentials.');
/** Status of a CredentialsBinding. */
export type CredentialsBindingStatus = z.output<typeof credentialsBindingStatus>;

/** Lets clusters of its namespace use the credentials of a cloud account. */
export interface CredentialsBinding extends KubeObject, CredentialsBindingFields {
  kind: 'CredentialsBinding';
  status?: CredentialsBindingStatus;
}

export const credentialsBindingDefinition: KindDefinition = {
  kind: 'CredentialsBinding',
  plural: 'credentialsbindings',
  singular: 'credentialsbinding',
  shortNames: ['cb'],
  scope: 'Namespaced',
  categories: ['coppice'],
  description:
    "Lets clusters of its namespace use the credentials of a cloud account, which are in a Secret there, or proven by a WorkloadIdentity. Fields and their meanings are those of Gardener's security.gardener.cloud/v1alpha1.",
  fields: credentialsBindingFields,
  status: credentialsBindingStatus,
  printerColumns: [
    { name: 'Provider', type: 'string', jsonPath: '.provider.type', description: 'Type of the provider.' },
    {
      name: 'Credentials',
      type: 'string',
      jsonPath: '.credentialsRef.name',
      description: 'Name of the Secret or WorkloadIdentity.',
    },
    { name: 'Account', type: 'string', jsonPath: '.status.account', description: 'Account that they are of.' },
    {
      name: 'Ready',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Ready")].status',
      description: 'Whether the cloud accepts them.',
    },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'How long it is known.' },
  ],
};
