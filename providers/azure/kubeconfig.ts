import { dependencyNotReady } from '../../operator/api/errors.ts';
import { rewriteUntrustedKubeconfig } from '../../operator/kube/kubeconfig.ts';
import { yamlDocument } from '../../operator/kube/yaml.ts';
import { writeKubeconfigText as write } from '../../operator/pki/kubeconfig.ts';
import type { CloudContext, CloudKubeconfig, ManagedClusterOutputs } from '../cloud.ts';
import { callAzure, type Endpoints } from './arm.ts';
import { AKS_SCOPE, entraToken, managementScope } from './token.ts';

/** API version of Microsoft.ContainerService; the one of @pulumi/azure-native 3.28. */
export const AKS_API = '2025-09-01';

/**
 * Access to an AKS cluster without az or kubelogin: the API server accepts Entra ID tokens for AKS' own application.
 * Only an adopted cluster may have local accounts, and possibly nobody with rights by Entra ID: then the
 * administrator's client certificate is used.
 */
export async function aksKubeconfig(
  ctx: CloudContext,
  endpoints: Endpoints,
  { name, endpoint, certificateAuthority, extra }: ManagedClusterOutputs,
): Promise<CloudKubeconfig> {
  if (extra?.localAccounts === 'true') return adminKubeconfig(ctx, endpoints, name, extra.id!);
  const { token, expiresAt } = await entraToken(ctx, endpoints, AKS_SCOPE);
  return { kubeconfig: write({ server: endpoint, ca: certificateAuthority, token, name, user: 'entra' }), expiresAt };
}

async function adminKubeconfig(
  ctx: CloudContext,
  endpoints: Endpoints,
  name: string,
  id: string,
): Promise<CloudKubeconfig> {
  const { token } = await entraToken(ctx, endpoints, managementScope(endpoints));
  const answer = await callAzure<{ kubeconfigs?: { value: string }[] }>({
    method: 'POST',
    url: `${endpoints.management}${id}/listClusterAdminCredential?api-version=${AKS_API}`,
    token,
    what: `no administrator's kubeconfig of ${name}`,
    signal: ctx.signal,
  });
  const encoded = answer?.kubeconfigs?.[0]?.value;
  if (!encoded) throw dependencyNotReady(`AKS gave no administrator's kubeconfig of ${name}`);
  // People take it from a Secret and use it with kubectl.
  return { kubeconfig: rewriteUntrustedKubeconfig(decoded(encoded), `the kubeconfig that AKS gave of ${name}`) };
}

const decoded = (base64: string): string => Buffer.from(base64, 'base64').toString();

/** CA certificate (PEM) of a kubeconfig in AKS' format: YAML in base64. */
export function certificateAuthorityOf(encoded: string): string {
  const text = decoded(encoded);
  const config = (text ? yamlDocument(text, { maxAliases: 0 }) : undefined) as
    | { clusters?: { cluster?: { 'certificate-authority-data'?: string } }[] }
    | undefined;
  const data = config?.clusters?.[0]?.cluster?.['certificate-authority-data'];
  if (!data) throw dependencyNotReady('the kubeconfig that AKS gave has no certificate authority');
  return decoded(data);
}
