import { writeKubeconfigText as write } from '../../operator/pki/kubeconfig.ts';
import type { CloudContext, CloudKubeconfig, ManagedClusterOutputs } from '../cloud.ts';
import type { Endpoints } from './google-api.ts';
import { accessToken } from './token.ts';

/** Access to a GKE cluster without gcloud: the API server accepts Google's access tokens, and IAM authorizes. */
export async function gkeKubeconfig(
  ctx: CloudContext,
  endpoints: Endpoints,
  { name, endpoint, certificateAuthority }: ManagedClusterOutputs,
): Promise<CloudKubeconfig> {
  const { token, expiresAt } = await accessToken(ctx, endpoints);
  return { kubeconfig: write({ server: endpoint, ca: certificateAuthority, token, name, user: 'google' }), expiresAt };
}
