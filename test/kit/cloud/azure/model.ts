import { digits } from '../digits.ts';
import type { CloudModel, CloudResource } from '../model.ts';
import { clusterTypes, kubeconfigOf } from './cluster-types.ts';
import { errors } from './errors.ts';
import { managed, pathWithin } from './naming.ts';
import { types } from './types.ts';

const AKS = 'azure-native:containerservice:ManagedCluster';
const GROUP = 'azure-native:resources:ResourceGroup';
const TENANT = '11111111-2222-3333-4444-555555555555';

const uuid = (...words: string[]): string =>
  digits(32, ...words).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

const tags = ({ inputs }: CloudResource): Record<string, string> => inputs.tags ?? {};

const lookups: CloudModel['lookups'] = {
  'azure-native:authorization:getClientConfig': (_, { caller }) => ({
    clientId: caller.principal,
    objectId: uuid('object', caller.principal),
    subscriptionId: caller.account,
    tenantId: TENANT,
  }),
  'azure-native:authorization:getClientToken': () => ({ token: 'fake-token' }),
  'azure-native:resources:getResourceGroup': (args, testbed) => {
    const group = testbed.find(GROUP, pathWithin(GROUP, args));
    return group && testbed.outputs(group);
  },
  'azure-native:containerservice:getManagedCluster': (args, testbed) => {
    const cluster = testbed.find(AKS, pathWithin(AKS, args));
    return cluster && testbed.outputs(cluster);
  },
  'azure-native:containerservice:listManagedClusterAdminCredentials': (args, testbed) => {
    const cluster = testbed.find(AKS, pathWithin(AKS, args));
    if (!cluster) return undefined;
    if (cluster.inputs.disableLocalAccounts) return { kubeconfigs: [] };
    const { clientCertificate, clientKey, token } = testbed.endpoint(cluster) ?? { token: 'fake-token' };
    const encoded = (pem: string) => Buffer.from(pem).toString('base64');
    const user = {
      ...(clientCertificate && clientKey
        ? { 'client-certificate-data': encoded(clientCertificate), 'client-key-data': encoded(clientKey) }
        : { token }),
    };
    return { kubeconfigs: [{ name: 'clusterAdmin', value: kubeconfigOf(cluster, testbed, user) }] };
  },
  'azure-native:containerservice:listManagedClusterUserCredentials': (args, testbed) => {
    const cluster = testbed.find(AKS, pathWithin(AKS, args));
    // People log in by a program of their own.
    const user = {
      exec: { apiVersion: 'client.authentication.k8s.io/v1beta1', command: 'kubelogin', args: ['get-token'] },
    };
    return cluster && { kubeconfigs: [{ name: 'clusterUser', value: kubeconfigOf(cluster, testbed, user) }] };
  },
};

/** Microsoft Azure. */
export const azure: CloudModel = {
  name: 'azure-native',
  types: new Map([...types, ...clusterTypes].map((type) => [type.type, type])),
  unknownType: (type) => managed(type),
  errors,
  regionalIds: false,
  keepsInputsWhenRead: true,
  settings(configuration, environment) {
    const federated = configuration.oidcToken ?? environment.ARM_OIDC_TOKEN ?? environment.ARM_OIDC_TOKEN_FILE_PATH;
    return {
      region: configuration.location ?? environment.ARM_LOCATION ?? '',
      defaultTags: {},
      allowedAccounts: [],
      proof: {
        key: configuration.clientId ?? environment.ARM_CLIENT_ID ?? '',
        secret: configuration.clientSecret ?? environment.ARM_CLIENT_SECRET ?? '',
        subscription: configuration.subscriptionId ?? environment.ARM_SUBSCRIPTION_ID ?? '',
        ...(federated && { federated }),
      },
    };
  },
  accountOf: ({ proof }, accounts) =>
    accounts.find(
      (account) =>
        account.cloud === 'azure-native' &&
        account.id === proof.subscription &&
        account.key === proof.key &&
        // Entra ID has looked into a workload's token: web/azure.ts.
        (proof.federated !== undefined || account.secret === proof.secret),
    ),
  newAccount(number) {
    const id = uuid('subscription', String(number));
    const key = uuid('client', String(number));
    const secret = `fake~${digits(34, 'azure secret', String(number))}`;
    const credentials = { clientID: key, clientSecret: secret, subscriptionID: id, tenantID: TENANT };
    return { cloud: 'azure-native', id, principal: key, key, secret, credentials };
  },
  checkConfiguration: () => undefined,
  // Resource Manager does not tell capitals from small letters.
  isCalled(resource, id) {
    const [own, asked] = [resource.id.toLowerCase(), id.toLowerCase()];
    return own === asked || (asked.startsWith('/resourcegroups/') && own.endsWith(asked));
  },
  autoname: (logicalName, digits) => `${logicalName}${digits.slice(0, 8)}`,
  commonOutputs: (resource) => ({ id: resource.id }),
  tags,
  lookups,
};
