import type { Attempt, CloudErrors } from '../model.ts';
import { kindOf, resourceId } from './kinds.ts';

/** As PulumiAzcoreResponseError prints itself: pulumi-azure-native provider/pkg/azure/client_azcore.go. */
const refusal = (status: number, code: string, message: string): string =>
  `Status=${status} Code="${code}" Message="${message}"`;

const VERBS = { create: 'write', read: 'read', update: 'write', delete: 'delete', invoke: 'action' } as const;

const action = ({ type, operation }: Attempt): string => {
  const { resourceType, level } = kindOf(type);
  const path = level === 'subscription' ? 'Microsoft.Resources/subscriptions/resourcegroups' : resourceType;
  return `${path}/${VERBS[operation]}`;
};

const scopeOf = (attempt: Attempt): string => {
  if (attempt.name.startsWith('/')) return attempt.name;
  const kind = kindOf(attempt.type);
  const names = Object.fromEntries(kind.names.map((name) => [name, attempt.name]));
  return resourceId(kind, attempt.caller?.account ?? '', { resourceGroupName: '*', scope: '', ...names });
};

const nameOf = (handle: unknown): string => String(handle).split('/').at(-1) ?? '';

/** Azure's words. Sources are issues on GitHub where nothing else is said. */
export const errors: CloudErrors = {
  action,
  /** The provider looks first: pulumi-azure-native provider/pkg/azure/client_azcore.go, CanCreate. */
  exists: (_, id) => `cannot create already existing resource '${id}'`,
  /** stormic-nomad-nishant/cloud_native_azure 3 (group), Azure Resource Manager's common deployment errors (others). */
  missing: (_, { type, handle }) =>
    type === 'azure-native:resources:ResourceGroup'
      ? refusal(404, 'ResourceGroupNotFound', `Resource group '${nameOf(handle)}' could not be found.`)
      : refusal(
          404,
          'ResourceNotFound',
          `The Resource '${kindOf(type).resourceType}/${nameOf(handle)}' was not found.`,
        ),
  gone: (attempt) => refusal(404, 'ResourceNotFound', `The Resource '${attempt.name}' was not found.`),
  /** hashicorp/terraform 16093. */
  inUse: (attempt, id, by) => {
    const name = id.split('/').at(-1);
    if (attempt.type === 'azure-native:network:VirtualNetwork' || attempt.type === 'azure-native:network:Subnet') {
      const message = `Subnet ${name} is in use by ${by.id} and cannot be deleted. In order to delete the subnet, delete all the resources within the subnet. See aka.ms/deletesubnet.`;
      return refusal(400, 'InUseSubnetCannotBeDeleted', message);
    }
    return refusal(400, 'ResourceInUse', `Resource ${id} is in use by ${by.id} and cannot be deleted.`);
  },
  refused: (_, { code, message }) => refusal(400, code, message),
  /** Azure/alzlib 168. */
  throttled: (attempt) => {
    const provider = kindOf(attempt.type).resourceType.split('/')[0];
    const message = `Number of requests for ${provider} exceeded the limit of '120' for time interval '00:01:00'. Please try again after '5' seconds.`;
    return refusal(429, 'ResourceRequestsThrottled', message);
  },
  /** 1ChristianAlex/motordesk 14 (AKS), Azure/karpenter-provider-azure 192 (others). */
  quota: (attempt, limit) =>
    attempt.type.startsWith('azure-native:containerservice:')
      ? refusal(
          400,
          'ErrCode_InsufficientVCPUQuota',
          `Insufficient vcpu quota requested 2, remaining 0 for family StandardDasv7Family for region ${attempt.region}. Surge nodes would also consume vcpu quota.`,
        )
      : refusal(
          409,
          'OperationNotAllowed',
          `Operation could not be completed as it results in exceeding approved ${kindOf(attempt.type).resourceType} quota. Additional details - Deployment Model: Resource Manager, Location: ${attempt.region}, Current Limit: ${limit}, Current Usage: ${limit}, Additional Required: 1, (Minimum) New Limit Required: ${limit + 1}.`,
        ),
  /** jenkins-infra/azure 997 and jenkins-infra/helpdesk 4459 (zones), Azure-Samples/aks-store-demo 115. */
  depleted: (_, { zones }) => {
    const zonal = zones.some((zone) => zone !== '');
    const constraints = [...(zonal ? ['Availability Zone'] : []), 'VM Size'].map((one) => `  - ${one}`).join('\n');
    return refusal(
      409,
      zonal ? 'OverconstrainedZonalAllocationRequest' : 'OverconstrainedAllocationRequest',
      `Allocation failed. VM(s) with the following constraints cannot be allocated, because the condition is too restrictive. Please remove some constraints and try again. Constraints applied are:\n${constraints}`,
    );
  },
  /** Azure/azure-sdk-for-go 16777 (azidentity's form), Azure/sap-automation 418 (the sentence). */
  unauthenticated: () => {
    const line = '-'.repeat(80);
    const description =
      'AADSTS7000215: Invalid client secret provided. Ensure the secret being sent in the request is the client secret value, not the client secret ID, for a secret added to app.';
    return `ClientSecretCredential authentication failed\nPOST https://login.microsoftonline.com/tenant/oauth2/v2.0/token\n${line}\nRESPONSE 401 Unauthorized\n${line}\n{\n  "error": "invalid_client",\n  "error_description": "${description}",\n  "error_codes": [\n    7000215\n  ]\n}\n${line}`;
  },
  /** rancher/rancher 11473 (write), pulumi/pulumi-azure-native 1511 (the look before a create). */
  denied: (attempt) => {
    const message = `The client '${attempt.caller?.principal}' with object id '${attempt.caller?.principal}' does not have authorization to perform action '${action(attempt)}' over scope '${scopeOf(attempt)}' or the scope is invalid. If access was recently granted, please refresh your credentials.`;
    return refusal(403, 'AuthorizationFailed', message);
  },
  /** microsoft/microsoft-foundry-for-vscode 292. */
  closed: (attempt) =>
    refusal(
      403,
      'RequestDisallowedByAzure',
      `Resource '${attempt.name}' was disallowed by Azure: This policy maintains a set of best available regions where your subscription can deploy resources. The objective of this policy is to ensure that your subscription has full access to Azure services with optimal performance. Should you need additional or different regions, contact support..`,
    ),
  internal: () => refusal(500, 'InternalServerError', 'An error occurred while processing the request.'),
};
