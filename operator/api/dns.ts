import { z } from 'zod';
import {
  describe,
  fixedOnceSet,
  free,
  LIMITS,
  labelName,
  list,
  name,
  objectName,
  PATTERNS,
  type Rule,
  text,
} from './schema.ts';

/** DNS domain in lower case without a final dot: labels of at most 63 letters, digits and dashes. */
const DOMAIN = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$/;

/** Provider and visibility of zones by Gardener's type of DNS provider; our own provider names are types too. */
const TYPES: Readonly<Record<string, { provider: string; visibility?: 'Public' | 'Private' }>> = {
  'aws-route53': { provider: 'aws' },
  'google-clouddns': { provider: 'gcp' },
  'azure-dns': { provider: 'azure', visibility: 'Public' },
  'azure-private-dns': { provider: 'azure', visibility: 'Private' },
};

/** Type of a DNS provider, or domain, whose records people maintain themselves (Gardener's term). */
export const UNMANAGED_DNS = 'unmanaged';

/** Provider and visibility of a DNS provider type. */
export const dnsTypeOf = (type: string): { provider: string; visibility?: 'Public' | 'Private' } =>
  TYPES[type] ?? { provider: type };

const dnsType = (what: string) =>
  name(
    LIMITS.label,
    `Whose zones ${what}: aws-route53, google-clouddns, azure-dns, azure-private-dns, or the name of a provider.`,
    PATTERNS.label,
  );

const zones = describe(
  z.object({
    include: list(name(512, 'Id of a zone.'), 64, 'Zones that may be used. Absent: all.').optional(),
    exclude: list(name(512, 'Id of a zone.'), 64, 'Zones that may not be used.').optional(),
  }),
  'Which zones may be used.',
);

/** DNS of a cluster; shared by Shoot and WorkerCluster. */
export const clusterDNSSchema = z
  .object({
    domain: name(
      // With prefix `_coppice.api.` this reaches DNS's longest name.
      240,
      'Domain of the cluster: its API server gets the name api.<domain>. Cannot be changed once set.',
      DOMAIN,
    ).optional(),
    providers: list(
      z
        .object({
          type: dnsType('have the domain').optional(),
          primary: z
            .boolean()
            .describe('Whether this is the provider of the domain, if several are listed.')
            .optional(),
          credentialsRef: z
            .object({
              apiVersion: text(316, 'apiVersion of what is named.').optional(),
              kind: z
                .enum(['CredentialsBinding', 'Secret', 'WorkloadIdentity'])
                .describe('Kind of the object with the credentials. Absent: Secret.')
                .optional(),
              name: objectName('Name of the object.'),
            })
            .describe(
              "Credentials of the zones' account, in the namespace of the cluster. Absent: those of the cluster.",
            )
            .optional(),
          secretName: objectName('Older form of credentialsRef.').optional(),
          zones: zones.optional(),
          domains: free('Which domains may be used.').optional(),
        })
        .describe('A DNS provider.'),
      16,
      'Who has the zones. Absent: the account that the machines are in.',
    ).optional(),
  })
  .describe('DNS names of the cluster.');
/** DNS settings of a cluster. */
export type ClusterDNS = z.output<typeof clusterDNSSchema>;

/** DNS fields that the operator acts on. */
export const ACTED_DNS = {
  domain: true,
  providers: { type: true, primary: true, credentialsRef: true, secretName: true, zones: true },
} as const;

/** Reference to the credentials for the cluster's DNS zone; undefined: the cluster's own credentials. */
export function dnsCredentialsRef({
  credentialsRef: ref,
  secretName,
}: NonNullable<ClusterDNS['providers']>[number]):
  | { kind: 'CredentialsBinding' | 'Secret' | 'WorkloadIdentity'; name: string }
  | undefined {
  if (ref) return { kind: ref.kind ?? 'Secret', name: ref.name };
  return secretName ? { kind: 'Secret', name: secretName } : undefined;
}

/** Rule that the domain never changes: certificates and kubeconfigs contain it. */
export const domainStays: Rule = fixedOnceSet('dns', 'domain');

/** DNS of a seed. */
export const seedDNSSchema = z
  .object({
    internal: z
      .object({
        type: dnsType('have the domain'),
        domain: name(
          // Names of clusters and namespaces precede it.
          100,
          'Every API server that the seed hosts gets the name api.<cluster>.<namespace>.<domain>. Cannot be changed once set.',
          DOMAIN,
        ),
        zone: name(512, 'Id of the zone. Absent: the zone with the longest domain that fits.').optional(),
        credentialsRef: z
          .object({
            apiVersion: text(316, 'apiVersion of what is named.').optional(),
            kind: z
              .enum(['Secret', 'WorkloadIdentity'])
              .describe('Kind of the object with the credentials. Absent: Secret.')
              .optional(),
            name: objectName('Name of the object.'),
            namespace: labelName('Namespace of the object. Absent: kube-system.').optional(),
          })
          .describe("Credentials of the zone's account.")
          .optional(),
      })
      .describe("The platform's own domain.")
      .optional(),
    provider: free('Who has the domain of the ingress. Not acted on: the seed has no ingress of ours.').optional(),
    defaults: list(free('A domain.'), 16, 'Domains for shoots that name none. Not acted on.').optional(),
    ingressDomain: text(253, 'Older form of ingress.domain.').optional(),
  })
  .describe('DNS names of clusters in the seed.');
