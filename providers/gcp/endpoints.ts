import type { CloudProfile } from '../../operator/api/cloudprofile.ts';
import { endpointsOf } from '../endpoints.ts';
import { type Endpoints, GOOGLE } from './google-api.ts';

const SERVICES = Object.keys(GOOGLE) as (keyof Endpoints)[];

/**
 * Base URL per service in the plugin, with its API version: it is built from google-beta
 * (hashicorp/terraform-provider-google website/docs/guides/provider_reference.html.markdown, "custom endpoints").
 */
const VARIABLES: Readonly<Partial<Record<keyof Endpoints, { name: string; path: string }>>> = {
  compute: { name: 'GOOGLE_COMPUTE_CUSTOM_ENDPOINT', path: '/compute/beta/' },
  container: { name: 'GOOGLE_CONTAINER_CUSTOM_ENDPOINT', path: '/v1beta1/' },
  kms: { name: 'GOOGLE_KMS_CUSTOM_ENDPOINT', path: '/v1/' },
  iam: { name: 'GOOGLE_IAM_CUSTOM_ENDPOINT', path: '/v1/' },
  resourceManager: { name: 'GOOGLE_RESOURCE_MANAGER_CUSTOM_ENDPOINT', path: '/v1/' },
};

/** Google's endpoints for this profile. */
export const endpointsAt = (profile: CloudProfile, otherwise: Endpoints): Endpoints => ({
  ...otherwise,
  ...endpointsOf(profile, SERVICES),
});

/** The same as the plugin's environment. */
export const pluginEndpoints = (profile: CloudProfile): Record<string, string> =>
  Object.fromEntries(
    Object.entries(endpointsOf(profile, SERVICES)).flatMap(([service, url]) => {
      const variable = VARIABLES[service as keyof Endpoints];
      return variable ? [[variable.name, `${url}${variable.path}`]] : [];
    }),
  );
