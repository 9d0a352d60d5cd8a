import type { Attempt, CloudErrors } from '../model.ts';
import { oneError } from '../one-error.ts';
import { kindOf } from './kinds.ts';

const VERBS = { create: 'create', read: 'get', update: 'update', delete: 'delete', invoke: 'get' } as const;

/**
 * terraform-provider-google's words before the API's. GKE's cluster has none (GoogleCloudPlatform/gke-logging-sinks-demo 11), its node
 * pool its own (hashicorp/terraform-provider-google 5229); others are generated: "Error creating Subnetwork"
 * (GoogleCloudPlatform/terraform-dynamic-python-webapp 60), "Error when reading or editing Subnetwork"
 * (f5devcentral/f5-digital-customer-engagement-center 156).
 */
function doing({ type, operation }: Attempt): string {
  const { noun } = kindOf(type);
  if (type === 'gcp:container:Cluster') return '';
  if (type === 'gcp:container:NodePool' && operation === 'create') return 'error creating NodePool: ';
  if (operation === 'create') return `Error creating ${noun}: `;
  return operation === 'invoke' ? '' : `Error when reading or editing ${noun}: `;
}

const googleapi = (attempt: Attempt, status: number, message: string, reason: string): string =>
  oneError(`${doing(attempt)}googleapi: Error ${status}: ${message}, ${reason}`);

const idOf = (attempt: Attempt): string => kindOf(attempt.type).idFromName(attempt);

const action = ({ type, operation }: Attempt): string => {
  const { service, collection } = kindOf(type);
  // GKE has no permissions of their own for node pools.
  if (type === 'gcp:container:NodePool') return `container.clusters.${operation === 'read' ? 'get' : 'update'}`;
  return `${service}.${collection}.${VERBS[operation]}`;
};

/** Google's words. Sources are issues and pull requests on GitHub where nothing else is said. */
export const errors: CloudErrors = {
  action,
  /** GoogleCloudPlatform/terraform-dynamic-python-webapp 60 (Compute), GoogleCloudPlatform/gke-logging-sinks-demo 11 (GKE). */
  exists: (attempt, id) =>
    kindOf(attempt.type).service === 'compute'
      ? googleapi(attempt, 409, `The resource '${id}' already exists`, 'alreadyExists')
      : googleapi(attempt, 409, `Already exists: ${id}.`, 'alreadyExists'),
  /** googlecloudrobotics/core 339 (network of a cluster), hashicorp/terraform-provider-google 5229 (cluster of a node pool). */
  missing: (attempt, { type, handle }) => {
    if (attempt.type === 'gcp:container:Cluster' && type === 'gcp:compute:Network') {
      const message = `Project "${attempt.caller?.account}" has no network named "${handle}".`;
      return googleapi(attempt, 400, message, 'badRequest');
    }
    return kindOf(attempt.type).service === 'compute'
      ? googleapi(attempt, 404, `The resource '${handle}' was not found`, 'notFound')
      : googleapi(attempt, 404, `Not found: ${handle}.`, 'notFound');
  },
  gone: (attempt) => googleapi(attempt, 404, `Not found: ${attempt.name}.`, 'notFound'),
  /** f5devcentral/f5-digital-customer-engagement-center 156. */
  inUse: (attempt, id, by) =>
    googleapi(
      attempt,
      400,
      `The ${kindOf(attempt.type).noun.toLowerCase()} resource '${id}' is already being used by '${by.id}'`,
      'resourceInUseByAnotherResource',
    ),
  refused: (attempt, { code, message }) => (code === '' ? oneError(message) : googleapi(attempt, 400, message, code)),
  /** GoogleCloudPlatform/python-docs-samples 3482 (the sentence), mxngls/gmail-cleaner 5 (status and reason). */
  throttled: (attempt) => {
    const { service } = kindOf(attempt.type);
    const message = `Quota exceeded for quota metric 'Queries' and limit 'Queries per minute' of service '${service}.googleapis.com' for consumer 'project_number:${attempt.caller?.account}'.`;
    return googleapi(attempt, 429, message, 'rateLimitExceeded');
  },
  /** hashicorp/terraform-provider-google 15074 (Compute); GoogleCloudPlatform/cloud-ops-sandbox 44 (GKE). */
  quota: (attempt, limit) => {
    const { service, noun, collection } = kindOf(attempt.type);
    if (service === 'container') {
      const message = `Insufficient regional quota to satisfy request: resource "CPUS": request requires '${limit + 1}.0' and is short '1.0'. project has a quota of '${limit}.0' with '0.0' available. View and manage quotas at https://console.cloud.google.com/iam-admin/quotas?usage=USED&project=${attempt.caller?.account}.`;
      return googleapi(attempt, 403, message, 'forbidden');
    }
    const metric = collection.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
    return oneError(
      `Error waiting to create ${noun}: Error waiting for Creating ${noun}: Quota '${metric}' exceeded.  Limit: ${limit}.0 globally.\n\tmetric name = compute.googleapis.com/${collection}\n\tlimit name = ${metric}-per-project\n`,
    );
  },
  /** hashicorp/terraform-provider-google 10121 (GKE), googlefonts/fontbakery-dashboard 81 (Compute). */
  depleted: (attempt, { zones, count }) => {
    const place = `The zone 'projects/${attempt.caller?.account}/zones/${zones[0]}' does not have enough resources available to fulfill the request.`;
    if (kindOf(attempt.type).service === 'container') {
      return oneError(
        `Error waiting for creating GKE NodePool: Google Compute Engine: Not all instances running in IGM after 1m6.219216581s. Expected ${count}, running 0, transitioning ${count}. Current errors: [GCE_STOCKOUT]: Instance '${attempt.name}-0' creation failed: ${place}  '(resource type:compute)'.`,
      );
    }
    return oneError(
      `Error waiting for Creating ${kindOf(attempt.type).noun}: ZONE_RESOURCE_POOL_EXHAUSTED: ${place} Try a different zone, or try again later.`,
    );
  },
  /** microsoft/azure-pipelines-terraform 94. */
  unauthenticated: (attempt) => {
    const { service } = kindOf(attempt.type);
    const url = `https://${service}.googleapis.com/v1/projects`;
    return oneError(
      `${doing(attempt)}Post "${url}": oauth2: cannot fetch token: 400 Bad Request\nResponse: {"error":"invalid_grant","error_description":"Invalid JWT Signature."}`,
    );
  },
  /** aronchick in hashicorp/terraform-provider-google 8262 (Compute), pulumi/examples 150 (GKE). */
  denied: (attempt) =>
    kindOf(attempt.type).service === 'container'
      ? googleapi(
          attempt,
          403,
          `Required "${action(attempt)}" permission(s) for "projects/${attempt.caller?.account}".`,
          'forbidden',
        )
      : googleapi(attempt, 403, `Required '${action(attempt)}' permission for '${idOf(attempt)}'`, 'forbidden'),
  /** firezone/firezone 7711. */
  closed: (attempt) =>
    googleapi(attempt, 403, `Permission denied on 'locations/${attempt.region}' (or it may not exist).`, 'forbidden'),
  internal: (attempt) => googleapi(attempt, 500, 'Internal error encountered.', 'backendError'),
};
