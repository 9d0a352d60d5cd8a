import type { CloudProfile } from '../../operator/api/cloudprofile.ts';
import { endpointsOf } from '../endpoints.ts';
import type { AwsConnection, AwsService } from './api.ts';

/**
 * Suffixes of AWS_ENDPOINT_URL_<SERVICE> in the AWS SDKs and so in the plugin (AWS SDKs and Tools Reference Guide,
 * "Identifiers for service-specific endpoints").
 */
const VARIABLES: Readonly<Record<AwsService, string>> = {
  sts: 'AWS_ENDPOINT_URL_STS',
  iam: 'AWS_ENDPOINT_URL_IAM',
  ec2: 'AWS_ENDPOINT_URL_EC2',
  eks: 'AWS_ENDPOINT_URL_EKS',
  kms: 'AWS_ENDPOINT_URL_KMS',
  autoscaling: 'AWS_ENDPOINT_URL_AUTO_SCALING',
  elasticloadbalancing: 'AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING_V2',
  route53: 'AWS_ENDPOINT_URL_ROUTE_53',
  tagging: 'AWS_ENDPOINT_URL_RESOURCE_GROUPS_TAGGING_API',
  s3: 'AWS_ENDPOINT_URL_S3',
};
const SERVICES = Object.keys(VARIABLES) as AwsService[];

/** The profile's endpoints; undefined for services that it does not name. */
export function endpointOf(profile: CloudProfile): AwsConnection['endpoint'] {
  const endpoints = endpointsOf(profile, SERVICES);
  return (service) => SERVICES.flatMap((known) => (known === service ? (endpoints[known] ?? []) : []))[0];
}

/** The same as the plugin's environment. */
export const pluginEndpoints = (profile: CloudProfile): Record<string, string> =>
  Object.fromEntries(
    Object.entries(endpointsOf(profile, SERVICES)).map(([service, url]) => [VARIABLES[service as AwsService], url]),
  );
