import type { Provider } from '../../providers/contract.ts';
import type { CloudProfile } from '../api/cloudprofile.ts';

/** Whether clusters of a profile are on record only, without control planes and nodes: it is for scale tests. */
export const isOnRecord = (profile: CloudProfile | undefined, provider: Provider | undefined): boolean =>
  profile !== undefined && provider?.recorded?.includes(profile) === true;
