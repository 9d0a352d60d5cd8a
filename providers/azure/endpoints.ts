import type { CloudProfile } from '../../operator/api/cloudprofile.ts';
import { endpointsOf } from '../endpoints.ts';
import type { Endpoints } from './arm.ts';

const SERVICES: readonly (keyof Endpoints)[] = ['login', 'management'];

/** Azure's endpoints for this profile. */
export const endpointsAt = (profile: CloudProfile, otherwise: Endpoints): Endpoints => ({
  ...otherwise,
  ...endpointsOf(profile, SERVICES),
});

/**
 * The same for the plugin, which reads all further endpoints from Azure Resource Manager (metadataHost of the provider
 * in
 * @pulumi/azure-native provider.d.ts).
 */
export function pluginEndpoints(profile: CloudProfile): Record<string, string> {
  const { management } = endpointsOf(profile, SERVICES);
  return management === undefined ? {} : { ARM_METADATA_HOSTNAME: new URL(management).host };
}
