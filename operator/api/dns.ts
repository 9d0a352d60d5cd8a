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

/** Labels of letters, digits and dashes with dots between, each of at most 63 characters; lower case, without a dot at the end. */
const DOMAIN = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$/;

/** Who keeps the zones of a type of Gardener's (and our own providers' names), and which of the zones that are meant. */
const TYPES: Readonly<Record<string, { provider: string; visibility?: 'Public' | 'Private' }>> = {
  'aws-route53': { provider: 'aws' },
  'google-clouddns': { provider: 'gcp' },
  'azure-dns': { provider: 'azure', visibility: 'Public' },
  'azure-private-dns': { provider: 'azure', visibility: 'Private' },
};

/** Type of a DNS provider, or domain, whose records people keep themselves (Gardener's word). */
export const UNMANAGED_DNS = 'unmanaged';

/** The provider that a type of DNS provider means, and which zones of it. */
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

/** The DNS of one cluster; the same for Shoot and WorkerCluster. */
export const clusterDNSSchema = z
  .object({
    domain: name(
      // With `_coppice.api.` before it the longest name that DNS has.
      240,
      'Domain of the cluster: its API server gets the name api.<domain>. Cannot be changed once set.',
      DOMAIN,
    ).optional(),
    providers: list(
      z
        .object({
          type: dnsType('have the domain').optional(),
          primary: z.boolean().describe('Whether this one has the domain, where there are several.').optional(),
          credentialsRef: z
            .object({
              apiVersion: text(316, 'apiVersion of what is named.').optional(),
              kind: z
                .enum(['CredentialsBinding', 'Secret', 'WorkloadIdentity'])
                .describe('Kind of what is named. Absent: Secret.')
                .optional(),
              name: objectName('Its name.'),
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
  .describe('DNS of the cluster.');
/** What a cluster says of its DNS. */
export type ClusterDNS = z.output<typeof clusterDNSSchema>;

/** What of it is acted on. */
export const ACTED_DNS = {
  domain: true,
  providers: { type: true, primary: true, credentialsRef: true, secretName: true, zones: true },
} as const;

/** What a provider of a cluster's domain is kept with; undefined: with the credentials of the cluster itself. */
export function dnsCredentialsRef({
  credentialsRef: ref,
  secretName,
}: NonNullable<ClusterDNS['providers']>[number]):
  | { kind: 'CredentialsBinding' | 'Secret' | 'WorkloadIdentity'; name: string }
  | undefined {
  if (ref) return { kind: ref.kind ?? 'Secret', name: ref.name };
  return secretName ? { kind: 'Secret', name: secretName } : undefined;
}

/** The rule that a cluster keeps its domain: its certificate and everybody's kubeconfigs have it. */
export const domainStays: Rule = fixedOnceSet('dns', 'domain');

/** The DNS of a seed. */
export const seedDNSSchema = z
  .object({
    internal: z
      .object({
        type: dnsType('have the domain'),
        domain: name(
          // Names of clusters and namespaces come before it.
          100,
          'Every API server that the seed hosts gets the name api.<cluster>.<namespace>.<domain>. Cannot be changed once set.',
          DOMAIN,
        ),
        zone: name(512, 'Id of the zone. Absent: the zone with the longest domain that fits.').optional(),
        credentialsRef: z
          .object({
            apiVersion: text(316, 'apiVersion of what is named.').optional(),
            kind: z.enum(['Secret', 'WorkloadIdentity']).describe('Kind of what is named. Absent: Secret.').optional(),
            name: objectName('Its name.'),
            namespace: labelName('Its namespace. Absent: kube-system.').optional(),
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
  .describe('DNS of the seed.');
/** What a seed says of its DNS. */
export type SeedDNS = z.output<typeof seedDNSSchema>;
