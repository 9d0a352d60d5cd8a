import { z } from 'zod';
import { commonStatus, type KubeObject } from './meta.ts';
import { type KindDefinition, LIMITS, list, name, type Rule, rules, text } from './schema.ts';

/** Clouds that accept a garden's tokens, with required and optional fields of providerConfig. */
const FIELDS = {
  aws: { needed: ['roleARN'], other: ['region'] },
  gcp: { needed: ['projectID', 'workloadIdentityProvider', 'serviceAccountEmail'], other: [] },
  azure: { needed: ['tenantID', 'clientID', 'subscriptionID'], other: [] },
} as const;
type TargetType = keyof typeof FIELDS;
const TYPES = Object.keys(FIELDS) as [TargetType, ...TargetType[]];

const UUID = /^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/;

/** Names each leftover field after the type was changed. */
const fits = (type: TargetType): Rule => {
  const { needed, other } = FIELDS[type];
  const own: readonly string[] = [...needed, ...other];
  const foreign = TYPES.flatMap((one) => [...FIELDS[one].needed, ...FIELDS[one].other]).filter(
    (field) => !own.includes(field),
  );
  const has = (field: string) => `has(self.providerConfig.${field})`;
  const fields = `${needed.join(', ')}${other.length > 0 ? `, and perhaps ${other.join(', ')}` : ''}`;
  return {
    rule: `self.type != '${type}' || (${[...needed.map(has), ...foreign.map((field) => `!${has(field)}`)].join(' && ')})`,
    message: `providerConfig of type ${type} has the fields ${fields}, and no others`,
  };
};

const targetSystem = rules(
  z.object({
    type: z.enum(TYPES).describe('The cloud, by its name in the binding. Cannot be changed.'),
    providerConfig: z
      .object({
        roleARN: name(
          2048,
          'aws: the IAM role that is assumed.',
          /^arn:[a-z-]+:iam::\d{12}:role\/[\w+=,.@/-]+$/,
        ).optional(),
        region: name(
          LIMITS.label,
          'aws: region of the STS that is asked. Absent: that of the cluster.',
          /^[a-z]{2,}(-[a-z]+)+-\d+$/,
        ).optional(),
        projectID: name(30, 'gcp: the project that clusters are made in.', /^[a-z][a-z0-9-]{4,28}[a-z0-9]$/).optional(),
        workloadIdentityProvider: name(
          512,
          "gcp: full name of the workload identity pool's provider.",
          /^projects\/\d+\/locations\/global\/workloadIdentityPools\/[a-z0-9-]+\/providers\/[a-z0-9-]+$/,
        ).optional(),
        serviceAccountEmail: name(
          320,
          'gcp: the service account that is impersonated.',
          /^[a-z0-9-]+@[a-z0-9.-]+\.gserviceaccount\.com$/,
        ).optional(),
        tenantID: name(36, 'azure: the directory of the application.', UUID).optional(),
        clientID: name(36, 'azure: the application, or the managed identity.', UUID).optional(),
        subscriptionID: name(36, 'azure: the subscription that clusters are made in.', UUID).optional(),
      })
      .describe(
        'Who one becomes there: roleARN for aws; projectID, workloadIdentityProvider and serviceAccountEmail for gcp; tenantID, clientID and subscriptionID for azure.',
      ),
  }),
  ...TYPES.map(fits),
  { rule: 'self.type == oldSelf.type', message: 'type cannot be changed after creation: make a new identity instead' },
).describe('Clusters and bindings that use the identity.');

export const workloadIdentitySpec = z
  .object({
    audiences: list(
      name(512, 'An audience.'),
      8,
      'Whom the token is for. Absent: what the cloud expects if it was not told otherwise (sts.amazonaws.com; the full name of the workload identity provider; api://AzureADTokenExchange).',
    )
      .min(1)
      .optional(),
    targetSystem,
  })
  .describe('The identity, and the cloud that is to trust it.');
/** Spec of a WorkloadIdentity. */
type WorkloadIdentitySpec = z.output<typeof workloadIdentitySpec>;

const workloadIdentityStatus = z
  .object({
    ...commonStatus,
    sub: text(1024, 'Subject of the tokens, which the cloud must trust.').optional(),
    issuer: text(
      1024,
      'Issuer of the tokens, which the cloud must trust: it asks there for the keys that sign them.',
    ).optional(),
  })
  .describe('State of the identity.');
/** Status of a WorkloadIdentity. */
export type WorkloadIdentityStatus = z.output<typeof workloadIdentityStatus>;

/** An identity that a token of the garden proves to a cloud, without a stored secret. */
export interface WorkloadIdentity extends KubeObject {
  kind: 'WorkloadIdentity';
  spec: WorkloadIdentitySpec;
  status?: WorkloadIdentityStatus;
}

/** Audiences of an identity's tokens: those of its spec, else the default of its cloud. */
export function audiencesOf({ audiences, targetSystem: { type, providerConfig } }: WorkloadIdentitySpec): string[] {
  if (audiences?.length) return audiences;
  if (type === 'aws') return ['sts.amazonaws.com'];
  if (type === 'azure') return ['api://AzureADTokenExchange'];
  return [`//iam.googleapis.com/${providerConfig.workloadIdentityProvider}`];
}

export const workloadIdentityDefinition: KindDefinition = {
  kind: 'WorkloadIdentity',
  plural: 'workloadidentities',
  singular: 'workloadidentity',
  shortNames: ['wi'],
  scope: 'Namespaced',
  categories: ['coppice'],
  description:
    "Somebody whom a cloud knows by tokens of this garden, without a secret: a CredentialsBinding of its namespace names it in place of a Secret. The tokens are those of a ServiceAccount that the operator makes beside it; what the cloud must trust is in its status. Fields and their meanings are those of Gardener's security.gardener.cloud/v1alpha1.",
  spec: workloadIdentitySpec,
  status: workloadIdentityStatus,
  maxNameLength: LIMITS.label,
  printerColumns: [
    { name: 'Type', type: 'string', jsonPath: '.spec.targetSystem.type', description: 'The cloud.' },
    { name: 'Sub', type: 'string', jsonPath: '.status.sub', description: 'Subject that the cloud must trust.' },
    {
      name: 'Ready',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Ready")].status',
      description: 'Whether there are tokens of it.',
    },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'How long it is known.' },
    {
      name: 'Issuer',
      type: 'string',
      jsonPath: '.status.issuer',
      description: 'Issuer that the cloud must trust.',
      priority: 1,
    },
  ],
};
