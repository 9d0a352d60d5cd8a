import { digits } from '../digits.ts';
import type { CloudModel, CloudResource, Properties, ResourceType } from '../model.ts';
import { balancerTypes } from './balancer-types.ts';
import { clusterTypes } from './cluster-types.ts';
import { errors } from './errors.ts';
import { lookups } from './lookups.ts';
import { machineTypes } from './machine-types.ts';
import { arn, numbered, simple } from './naming.ts';
import { networkTypes } from './network-types.ts';

const tags = ({ inputs, defaultTags, type }: CloudResource): Record<string, string> => {
  // An Auto Scaling group's tags are a list, for each whether it reaches the machines.
  if (type === 'aws:autoscaling:Group') {
    return Object.fromEntries((inputs.tags ?? []).map(({ key, value }: Properties) => [key, value]));
  }
  return { ...defaultTags, ...inputs.tags };
};

const unknownType = (type: string): ResourceType => {
  const [, module = '', object = ''] = type.split(':');
  return simple(type, {
    immutable: ['name'],
    id: ({ uid, inputs }) => inputs.name ?? numbered(object.toLowerCase())({ uid }),
    uniqueBy: (inputs) => inputs.name,
    outputs: (one) => ({ arn: arn(one, module, `${object.toLowerCase()}/${one.id}`) }),
  });
};

/**
 * pulumi-aws provider/configure_test.go, TestInvalidCredentialsErrorMessage (first line), and provider/credentials_errors.go: which
 * text is shown for what.
 */
const INVALID_CREDENTIALS = 'Invalid credentials configured.';
const NO_CREDENTIALS = 'No valid credential sources found.';
const MORE =
  'Please see https://www.pulumi.com/registry/packages/aws/installation-configuration/ for more information about providing credentials.';

/** Amazon Web Services. */
export const aws: CloudModel = {
  name: 'aws',
  types: new Map(
    [...networkTypes, ...balancerTypes, ...clusterTypes, ...machineTypes].map((type) => [type.type, type]),
  ),
  unknownType,
  errors,
  regionalIds: true,
  settings(configuration, environment) {
    const roleArn = configuration.assumeRoleWithWebIdentity?.roleArn ?? environment.AWS_ROLE_ARN;
    const token = environment.AWS_WEB_IDENTITY_TOKEN_FILE;
    return {
      region: configuration.region ?? environment.AWS_REGION ?? environment.AWS_DEFAULT_REGION ?? '',
      defaultTags: configuration.defaultTags?.tags ?? {},
      allowedAccounts: configuration.allowedAccountIds ?? [],
      proof: {
        key: configuration.accessKey ?? environment.AWS_ACCESS_KEY_ID ?? '',
        secret: configuration.secretKey ?? environment.AWS_SECRET_ACCESS_KEY ?? '',
        ...(roleArn && token && { role: roleArn }),
      },
    };
  },
  accountOf: ({ proof, allowedAccounts }, accounts) =>
    accounts.find(
      (account) =>
        account.cloud === 'aws' &&
        (allowedAccounts.length === 0 || allowedAccounts.includes(account.id)) &&
        // A role is taken as given: no token of a workload is looked into.
        (proof.role?.includes(`:${account.id}:`) || (account.key === proof.key && account.secret === proof.secret)),
    ),
  newAccount(number) {
    const id = String(100_000_000_000 + number);
    const key = `AKIA${digits(16, 'aws', id).toUpperCase()}`;
    const secret = Buffer.from(digits(60, 'aws secret', id), 'hex').toString('base64');
    return {
      cloud: 'aws',
      id,
      principal: `arn:aws:iam::${id}:user/coppice`,
      key,
      secret,
      credentials: { accessKeyID: key, secretAccessKey: secret },
    };
  },
  checkConfiguration({ proof, region }, account) {
    if (region === '') return 'Missing region configuration';
    if (account) return undefined;
    return `${proof.key || proof.role ? INVALID_CREDENTIALS : NO_CREDENTIALS}\n${MORE}`;
  },
  isCalled: (resource, id) => resource.id === id || arnOf(resource) === id,
  autoname: (logicalName, digits) => `${logicalName}-${digits.slice(0, 7)}`,
  commonOutputs: (resource) => ({
    id: resource.id,
    ...(resource.region !== 'global' && { region: resource.region }),
    ...(resource.type !== 'aws:autoscaling:Group' && { tagsAll: tags(resource) }),
  }),
  tags,
  lookups: lookups(tags),
};

/** For what is referred to by ARN: a role's is known without looking at anything else. */
const arnOf = (resource: CloudResource): string | undefined =>
  resource.type === 'aws:iam:Role'
    ? arn(resource, 'iam', `role${resource.inputs.path ?? '/'}${resource.name}`)
    : undefined;
