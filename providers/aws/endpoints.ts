import type { CloudProfile } from '../../operator/api/cloudprofile.ts';
import { endpointsOf } from '../endpoints.ts';
import type { AwsConnection, AwsService } from './api.ts';

/**
 * What the AWS SDKs, and so the plugin, call our services in AWS_ENDPOINT_URL_<SERVICE> (AWS SDKs and Tools Reference Guide,
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

/** Where services are that the profile names; undefined for the others. */
export function endpointOf(profile: CloudProfile): AwsConnection['endpoint'] {
  const endpoints = endpointsOf(profile, SERVICES);
  return (service) => SERVICES.flatMap((known) => (known === service ? (endpoints[known] ?? []) : []))[0];
}

/** The same for the plugin, as environment. */
export const pluginEndpoints = (profile: CloudProfile): Record<string, string> =>
  Object.fromEntries(
    Object.entries(endpointsOf(profile, SERVICES)).map(([service, url]) => [VARIABLES[service as AwsService], url]),
  );
