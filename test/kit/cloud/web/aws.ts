import { aws as model } from '../aws/model.ts';
import type { Account, CloudResource, Properties, Testbed } from '../model.ts';
import { neededAtAWS } from '../needs/web.ts';
import { type Distrust, judgeToken } from '../trust.ts';
import { answerXML, describeEC2, taggedAnswer, withTagList } from './aws-answers.ts';
import { describeBalancers } from './aws-balancers.ts';
import { s3, s3Action } from './aws-buckets.ts';
import { RefusedBatch, route53, route53Action, saidOfBatch } from './aws-dns.ts';
import { describeMachines, scaleGroups } from './aws-machines.ts';
import { scaleNodeGroups, toldByEKS } from './aws-node-groups.ts';
import { type Asked, fieldsOf, Refused, type Said, type Web } from './server.ts';
import { signed } from './signature.ts';

/** What a signature says: whose key, when, where and for which service. */
function signatureOf({ headers }: Asked) {
  const match = /Credential=([^/]+)\/(\d+)\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+)/.exec(
    headers.authorization ?? '',
  );
  const stamp = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(String(headers['x-amz-date'] ?? ''));
  if (!match || !stamp) return undefined;
  const [, key = '', , region = '', service = '', names = ''] = match;
  const [, year, month, day, hour, minute, second] = stamp;
  const now = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  return { key, region, service, names: names.split(';'), now };
}

/** Whether the account's secret makes this signature. */
function isSignedBy(asked: Asked, account: Account): boolean {
  const signature = signatureOf(asked);
  if (!signature || signature.key !== account.key) return false;
  const { names, service, region, now } = signature;
  const own = ['host', 'x-amz-date'];
  const headers = Object.fromEntries(
    names.filter((name) => !own.includes(name)).map((name) => [name, String(asked.headers[name] ?? '')]),
  );
  const key = { accessKeyID: account.key, secretAccessKey: account.secret };
  const hash = asked.headers['x-amz-content-sha256'];
  const payload = service === 's3' && typeof hash === 'string' ? { payloadHash: hash } : {};
  const again = signed({ ...asked, headers, ...payload }, key, { service, region, now });
  return again.authorization === asked.headers.authorization;
}

const found = (testbed: Testbed, type: string, handle: string, code: string): CloudResource => {
  const resource = testbed.find(type, handle);
  if (!resource) throw new Refused(404, code, `${handle} does not exist`);
  return resource;
};

/** Temporary credentials for whoever took a role: here those of the account itself. */
const sessionOf = ({ key, secret }: Account, { DurationSeconds = '3600' }: Record<string, string>): Properties => ({
  AccessKeyId: key,
  SecretAccessKey: secret,
  SessionToken: 'session',
  Expiration: new Date(Date.now() + Number(DurationSeconds) * 1000).toISOString(),
});

/** So few that a simulation for all that Coppice needs has more than one page. */
const PAGE = 20;

/** IAM and STS. */
function query(
  action: string,
  fields: Record<string, string>,
  testbed: Testbed,
  denied: readonly string[],
  accounts: readonly Account[],
): Properties {
  const { caller } = testbed;
  if (action === 'GetCallerIdentity') {
    return { Account: caller.account, Arn: caller.principal, UserId: 'AIDAFAKEFAKEFAKEFAKE1' };
  }
  if (action === 'AssumeRole') {
    const account = accounts.find(({ id }) => id === caller.account && fields.RoleArn?.includes(`:${id}:`));
    if (!account) throw new Refused(403, 'AccessDenied', `not authorized to perform: sts:AssumeRole`);
    return { Credentials: sessionOf(account, fields) };
  }
  if (action === 'SimulatePrincipalPolicy') {
    const actions = Object.entries(fields).flatMap(([key, value]) =>
      key.startsWith('ActionNames.member.') ? [value] : [],
    );
    const from = Number(fields.Marker ?? 0);
    const EvaluationResults = actions.slice(from, from + PAGE).map((one) => ({
      EvalActionName: one,
      EvalDecision: denied.includes(one) ? 'implicitDeny' : 'allowed',
    }));
    const isTruncated = from + PAGE < actions.length;
    return { IsTruncated: isTruncated, EvaluationResults, ...(isTruncated && { Marker: String(from + PAGE) }) };
  }
  if (action === 'GetRole') {
    const role = found(testbed, 'aws:iam:Role', fields.RoleName!, 'NoSuchEntity');
    return { Role: withTagList(role, { RoleName: role.name, Arn: testbed.outputs(role).arn }) };
  }
  if (action === 'ListAttachedRolePolicies') {
    const { name } = found(testbed, 'aws:iam:Role', fields.RoleName!, 'NoSuchEntity');
    const attached = testbed.all('aws:iam:RolePolicyAttachment').filter(({ inputs }) => inputs.role === name);
    const AttachedPolicies = attached.map(({ inputs }) => ({ PolicyArn: inputs.policyArn }));
    return { IsTruncated: 'false', AttachedPolicies };
  }
  if (action === 'GetInstanceProfile') {
    const profile = found(testbed, 'aws:iam:InstanceProfile', fields.InstanceProfileName!, 'NoSuchEntity');
    return { InstanceProfile: withTagList(profile, { InstanceProfileName: profile.name }) };
  }
  throw new Refused(400, 'InvalidAction', `the fake AWS does not know ${action}: add it to web/aws.ts`);
}

/** What EKS has under a path: its type, its key in the answer, and its id from the parts of the path. */
const EKS: readonly [path: RegExp, type: string, key: string, id: (...parts: string[]) => string][] = [
  [/^\/clusters\/([^/]+)$/, 'aws:eks:Cluster', 'cluster', (cluster) => cluster],
  [/^\/clusters\/([^/]+)\/node-groups\/([^/]+)$/, 'aws:eks:NodeGroup', 'nodegroup', (...parts) => parts.join(':')],
  [/^\/clusters\/([^/]+)\/addons\/([^/]+)$/, 'aws:eks:Addon', 'addon', (...parts) => parts.join(':')],
  [/^\/clusters\/([^/]+)\/access-entries\/(.+)$/, 'aws:eks:AccessEntry', 'accessEntry', (...parts) => parts.join(':')],
];

function eks({ url }: Asked, testbed: Testbed): Properties {
  const groupsOf = /^\/clusters\/([^/]+)\/node-groups$/.exec(url.pathname)?.[1];
  if (groupsOf !== undefined) {
    const groups = testbed.all('aws:eks:NodeGroup').filter(({ inputs }) => inputs.clusterName === groupsOf);
    return { nodegroups: groups.filter(({ region }) => region === testbed.region).map(({ name }) => name) };
  }
  for (const [path, type, key, id] of EKS) {
    const parts = path.exec(url.pathname)?.slice(1).map(decodeURIComponent);
    if (!parts) continue;
    const resource = found(testbed, type, id(...parts), 'ResourceNotFoundException');
    const { vpcConfig, ...told } = testbed.outputs(resource);
    const outputs = key === 'nodegroup' ? toldByEKS(told) : told;
    const more = { ...(vpcConfig && { resourcesVpcConfig: vpcConfig }), createdAt: resource.createdAt / 1000 };
    return { [key]: { ...outputs, ...more, tags: model.tags(resource) } };
  }
  throw new Refused(404, 'NotFoundException', `the fake AWS does not know ${url.pathname}: add it to web/aws.ts`);
}

function kms(action: string, { KeyId }: Properties, testbed: Testbed): Properties {
  const alias = String(KeyId).startsWith('alias/') ? testbed.find('aws:kms:Alias', KeyId) : undefined;
  const key = found(
    testbed,
    'aws:kms:Key',
    String(alias?.inputs.targetKeyId ?? KeyId)
      .split('/')
      .at(-1)!,
    'NotFoundException',
  );
  if (action === 'ListResourceTags') {
    return { Tags: Object.entries(model.tags(key)).map(([TagKey, TagValue]) => ({ TagKey, TagValue })) };
  }
  return { KeyMetadata: { KeyId: key.id, KeyState: 'Enabled', CreationDate: key.createdAt / 1000 } };
}

const targetOf = ({ headers }: Asked): string =>
  String(headers['x-amz-target'] ?? '')
    .split('.')
    .at(-1)!;

/**
 * How STS refuses a token. Texts: awslabs/amazon-eks-irsa-cfn pull 18, aws-actions/configure-aws-credentials issue 280; codes and
 * statuses: botocore's service model of sts.
 */
const REFUSALS: Readonly<Record<Distrust, (issuer: string) => Refused>> = {
  form: () => new Refused(400, 'InvalidIdentityToken', 'The ID Token provided is not a valid JWT.'),
  issuer: (issuer) =>
    new Refused(400, 'InvalidIdentityToken', `No OpenIDConnect provider found in your account for ${issuer}`),
  audience: () => new Refused(400, 'InvalidIdentityToken', 'Incorrect token audience'),
  expiry: () => new Refused(400, 'ExpiredTokenException', 'Token expired'),
  subject: () => new Refused(403, 'AccessDenied', 'Not authorized to perform sts:AssumeRoleWithWebIdentity'),
};

type Reason = 'unknown' | 'throttled' | 'denied';

/** Statuses and codes of what every request may be refused for: "Common Errors" of the API references, and those of EC2 and S3. */
const COMMON: Readonly<Record<Reason, readonly [number, string]>> = {
  unknown: [403, 'InvalidClientTokenId'],
  throttled: [400, 'Throttling'],
  denied: [403, 'AccessDenied'],
};
const OF_JSON = {
  unknown: [400, 'UnrecognizedClientException'],
  throttled: [400, 'ThrottlingException'],
  denied: [400, 'AccessDeniedException'],
} as const;
const REASONS: Readonly<Record<string, Readonly<Partial<Record<Reason, readonly [number, string]>>>>> = {
  ec2: {
    unknown: [401, 'AuthFailure'],
    throttled: [503, 'RequestLimitExceeded'],
    denied: [403, 'UnauthorizedOperation'],
  },
  s3: { unknown: [403, 'InvalidAccessKeyId'], throttled: [503, 'SlowDown'] },
  eks: {
    unknown: [403, 'UnrecognizedClientException'],
    throttled: [429, 'ThrottlingException'],
    denied: [403, 'AccessDeniedException'],
  },
  kms: OF_JSON,
  tag: { ...OF_JSON, throttled: [400, 'ThrottledException'] },
};

/** Actions begin with their service. */
const refusing = (reason: Reason, message: string) => (action: string) =>
  new Refused(...(REASONS[action.split(':')[0]!]?.[reason] ?? COMMON[reason]), message);

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** As the service writes its errors: the protocols of the service models (query, ec2, json, rest-json, rest-xml). */
function refusal(refused: Refused, service = ''): Said {
  if (refused instanceof RefusedBatch) return saidOfBatch(refused);
  const { status, code, message } = refused;
  if (service === 'eks') return { status, body: { message }, headers: { 'x-amzn-errortype': code } };
  if (service === 'kms' || service === 'tagging')
    return { status, body: { __type: code, message }, headers: { 'content-type': 'application/x-amz-json-1.1' } };
  const error = `<Code>${code}</Code><Message>${escaped(message)}</Message>`;
  const body =
    { s3: `<Error>${error}</Error>`, ec2: `<Response><Errors><Error>${error}</Error></Errors></Response>` }[service] ??
    `<ErrorResponse><Error><Type>Sender</Type>${error}</Error></ErrorResponse>`;
  return { status, body, headers: { 'content-type': 'text/xml' } };
}

/** AWS' APIs, as far as Coppice asks them. Signatures are checked; any role is given to whoever brings a token that the account trusts. */
export const awsWeb: Web = {
  model,
  open(asked, accounts, store): Said | undefined {
    const fields = fieldsOf(asked);
    if (fields.Action !== 'AssumeRoleWithWebIdentity') return undefined;
    const account = accounts.find(({ id }) => fields.RoleArn?.includes(`:${id}:`));
    const { distrust, claims } = judgeToken(store, account, fields.WebIdentityToken ?? '');
    if (!account || distrust) return refusal(REFUSALS[distrust ?? 'subject'](claims?.issuer ?? ''));
    const Credentials = sessionOf(account, fields);
    return { body: answerXML(fields.Action, { AssumeRoleWithWebIdentityResult: { Credentials } }, 'member') };
  },
  caller: (asked, accounts) => accounts.find((account) => isSignedBy(asked, account)),
  about(asked) {
    const { region = '', service = '' } = signatureOf(asked) ?? {};
    if (service === 'route53') return { region, action: route53Action(asked) };
    if (service === 's3') return { region, action: s3Action(asked) };
    const action = fieldsOf(asked).Action ?? (targetOf(asked) || asked.url.pathname);
    return { region, action: `${service === 'tagging' ? 'tag' : service}:${action}` };
  },
  needs(asked) {
    const { service = '' } = signatureOf(asked) ?? {};
    return neededAtAWS(service, fieldsOf(asked).Action ?? targetOf(asked) ?? '', asked.url.pathname);
  },
  answer(asked, testbed, denied, store) {
    const { service, region } = signatureOf(asked)!;
    if (service === 'route53') return route53(asked, testbed.caller.account, store);
    if (service === 's3') return s3(asked, testbed, region, store);
    if (service === 'eks') return { body: eks(asked, testbed) };
    if (service === 'kms') return { body: kms(targetOf(asked), JSON.parse(asked.body), testbed) };
    if (service === 'tagging') return { body: taggedAnswer(JSON.parse(asked.body), testbed) };
    const fields = fieldsOf(asked);
    const action = fields.Action!;
    const described =
      service === 'ec2'
        ? (describeMachines(action, fields, testbed, store) ?? describeEC2(action, fields, testbed))
        : undefined;
    if (described) return { body: answerXML(action, described, 'item') };
    if (service === 'elasticloadbalancing') {
      const told = describeBalancers(action, fields, testbed);
      return { body: answerXML(action, { [`${action}Result`]: told }, 'member') };
    }
    const result =
      scaleNodeGroups(action, fields, testbed, store) ??
      scaleGroups(action, fields, testbed, store) ??
      query(action, fields, testbed, denied, store.accounts());
    return { body: answerXML(action, { [`${action}Result`]: result }, 'member') };
  },
  refusals: {
    unknown: refusing('unknown', 'The security token included in the request is invalid.'),
    throttled: refusing('throttled', 'Rate exceeded'),
    denied: (action) => refusing('denied', `not authorized to perform: ${action}`)(action),
    closed: () => new Refused(401, 'AuthFailure', 'AWS was not able to validate the provided access credentials'),
  },
  refusal: (refused, asked) => refusal(refused, signatureOf(asked)?.service),
};
