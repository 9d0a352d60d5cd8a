import type { Provider } from '../../providers/contract.ts';
import type { CloudProfile } from '../api/cloudprofile.ts';

/** Whether clusters of a profile exist as objects only, for scale tests. */
export const lacksControlPlane = (profile: CloudProfile | undefined, provider: Provider | undefined): boolean =>
  profile !== undefined && provider?.withoutControlPlane?.includes(profile) === true;
