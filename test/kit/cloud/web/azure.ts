import { kindOf } from '../azure/kinds.ts';
import { azure as model } from '../azure/model.ts';
import type { Account, CloudResource, Testbed } from '../model.ts';
import { neededAtAzure } from '../needs/web.ts';
import type { Store } from '../store.ts';
import { type Distrust, judgeToken } from '../trust.ts';
import { agentPools } from './azure-agent-pools.ts';
import { blobStorage } from './azure-buckets.ts';
import { azureDNS, azureDNSAction } from './azure-dns.ts';
import { computeMachines } from './azure-machines.ts';
import { type Asked, FlatRefusal, fieldsOf, Refused, type Said, type Web } from './server.ts';

/** Whom tokens are for, by the scope of which they were asked for. Where the fake itself is, is Resource Manager. */
const RESOURCES = {
  'https://management.azure.com': 'management',
  'https://storage.azure.com': 'storage',
  '6dae42f8-4368-4678-94ff-3960e28e3630': 'aks',
} as const;
type Resource = (typeof RESOURCES)[keyof typeof RESOURCES];

/** A token says for whom it is, and names the client that it was given to. */
const tokenOf = ({ key }: Account, resource: Resource): string => `entra.${resource}.${key}`;

/** Who takes the token that comes with a request: each takes its own only. */
function resourceOf({ hostname, pathname }: URL): Resource {
  if (pathname.startsWith('/blob/')) return 'storage';
  return hostname === 'kubernetes' ? 'aks' : 'management';
}

/** What Azure Resource Manager shows beside `properties`; azure-native has it all in one. */
const ENVELOPE = ['id', 'name', 'type', 'location'];

/** Path below a resource group; empty of what is not in it. */
const within = (id: string, group: string): string =>
  id.toLowerCase().startsWith(`${group.toLowerCase()}/`) ? id.slice(group.length) : '';

const described = (resource: CloudResource, testbed: Testbed) => ({
  id: resource.id,
  name: resource.name,
  type: kindOf(resource.type).resourceType,
  location: resource.region,
  tags: model.tags(resource),
  // Agent pools have their tags in here.
  properties: Object.fromEntries(Object.entries(testbed.outputs(resource)).filter(([key]) => !ENVELOPE.includes(key))),
});

const found = (path: string, testbed: Testbed): CloudResource => {
  const resource = testbed.all().find((one) => model.isCalled(one, path));
  if (!resource) throw new Refused(404, 'ResourceNotFound', `The Resource '${path}' was not found.`);
  return resource;
};

function tokenFor(account: Account, { url }: Asked, fields: Record<string, string>): Said {
  const scope = scopeIn(fields)!.replace(/\/\.default$/, '');
  const resource = scope === url.origin ? 'management' : RESOURCES[scope as keyof typeof RESOURCES];
  if (resource) return { body: { token_type: 'Bearer', expires_in: 3599, access_token: tokenOf(account, resource) } };
  const description = `AADSTS500011: The resource principal named ${scope} was not found in the tenant.`;
  return { status: 400, body: { error: 'invalid_resource', error_description: description } };
}

/** Others may be asked for, too, which come with every token. */
const scopeIn = ({ scope = '' }: Record<string, string>): string | undefined =>
  scope.split(' ').find((one) => one.endsWith('/.default'));

const CHECK =
  'Please check your federated identity credential Subject, Audience and Issuer against the presented assertion.';

/**
 * How Entra ID refuses an assertion. Texts: Azure/azure-workload-identity issue 1200 (issuer), Azure/login issue 482 (subject),
 * MicrosoftDocs/azure-devops-docs errors-workload-identity.md (700024).
 */
const REFUSALS: Readonly<Record<Distrust, (claim: string) => string>> = {
  form: () => 'AADSTS50027: JWT token is invalid or malformed.',
  issuer: (claim) =>
    `AADSTS700211: No matching federated identity record found for presented assertion issuer '${claim}'. ${CHECK}`,
  audience: (claim) =>
    `AADSTS700212: No matching federated identity record found for presented assertion audience '${claim}'. ${CHECK}`,
  subject: (claim) =>
    `AADSTS700213: No matching federated identity record found for presented assertion subject '${claim}'. ${CHECK}`,
  expiry: () => 'AADSTS700024: Client assertion is not within its valid time range.',
};

/** Why the account does not trust the assertion; undefined: it does. */
function distrusted(assertion: string, account: Account | undefined, store: Store): Said | undefined {
  const { distrust, claims } = judgeToken(store, account, assertion);
  if (account && !distrust) return undefined;
  const said = { issuer: claims?.issuer, audience: claims?.audiences[0], subject: claims?.subject };
  const why = distrust ?? 'issuer';
  const description = REFUSALS[why](said[why as keyof typeof said] ?? '');
  return { status: 401, body: { error: 'invalid_client', error_description: description } };
}

/** What of a request for a token is not as the OAuth 2.0 client credentials flow of Entra ID has it. Texts: Entra ID's reference of errors. */
function wrongRequest(fields: Record<string, string>): string | undefined {
  if (fields.grant_type !== 'client_credentials')
    return `AADSTS70003: The app requested an unsupported grant type '${fields.grant_type}'.`;
  if (scopeIn(fields) === undefined)
    return `AADSTS1002012: The provided value for scope ${fields.scope} is not valid. Client credential flows must have a scope value with /.default suffixed to the resource identifier.`;
  const type = fields.client_assertion_type;
  if (fields.client_assertion !== undefined && type !== 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer')
    return 'AADSTS900144: The request body must contain the following parameter: client_assertion_type.';
  return undefined;
}

/** What clients of Entra ID ask before their first token (OpenID Connect Discovery 1.0). */
const aboutTenant = (authority: string) => ({
  issuer: `${authority}/v2.0`,
  authorization_endpoint: `${authority}/oauth2/v2.0/authorize`,
  token_endpoint: `${authority}/oauth2/v2.0/token`,
  jwks_uri: `${authority}/discovery/v2.0/keys`,
});

/** What Resource Graph is asked, as far as it is heeded here: everything that has tags is told. */
interface GraphQuery {
  subscriptions: string[];
  options?: { $skipToken?: string };
}

/** So few that pages are met with. */
const GRAPH_PAGE = 5;

/** Where clients follow what goes on by itself: here it is done at once. */
const FOLLOWED = '/operations/followed';

function answered(asked: Asked, testbed: Testbed, denied: readonly string[], store: Store): Said {
  const { method, url, body } = asked;
  const zones = azureDNS(asked, testbed.caller.account, store);
  if (zones) return zones;
  const stored = blobStorage(asked, testbed, store);
  if (stored) return stored;
  const path = decodeURIComponent(url.pathname);
  const machines = computeMachines({ method, path, query: url.searchParams, body }, testbed, store);
  if (machines) return machines;
  const pools = agentPools({ method, path, body }, (pool) => described(pool, testbed), testbed, store);
  if (pools) return pools;
  const subscription = `/subscriptions/${testbed.caller.account}`;
  if (path === subscription)
    return { body: { id: subscription, subscriptionId: testbed.caller.account, state: 'Enabled' } };
  if (path === `${subscription}/providers/Microsoft.Authorization/permissions`) {
    return { body: { value: [{ actions: ['*'], notActions: denied }] } };
  }
  if (path === '/providers/Microsoft.ResourceGraph/resources') {
    const { subscriptions, options } = JSON.parse(body) as GraphQuery;
    const rows = subscriptions.includes(testbed.caller.account) ? testbed.all() : [];
    const data = rows
      .filter((one) => Object.keys(model.tags(one)).length > 0)
      .map((one) => described(one, testbed))
      .map(({ id, type, location, tags }) => ({ id, type: type.toLowerCase(), location, tags }));
    const from = Number(options?.$skipToken ?? 0);
    const page = data.slice(from, from + GRAPH_PAGE);
    const next = from + GRAPH_PAGE < data.length && { $skipToken: String(from + GRAPH_PAGE) };
    return { body: { totalRecords: data.length, count: page.length, data: page, ...next } };
  }
  const group = /^(\/subscriptions\/[^/]+\/resourceGroups\/[^/]+)\/resources$/.exec(path)?.[1];
  if (group !== undefined) {
    // What is within another resource is not in the list.
    const inGroup = testbed.all().filter(({ id }) => /^\/providers\/[^/]+\/[^/]+\/[^/]+$/.test(within(id, group)));
    return { body: { value: inGroup.map((one) => described(one, testbed)) } };
  }
  const scope = /^(.*)\/providers\/Microsoft\.Authorization\/roleAssignments$/.exec(path)?.[1];
  if (scope !== undefined) {
    const assignments = testbed.all('azure-native:authorization:RoleAssignment');
    const value = assignments.filter(({ inputs }) => inputs.scope === scope).map((one) => described(one, testbed));
    return { body: { value } };
  }
  const action = /^(.*)\/(listCluster(?:Admin|User)Credential)$/.exec(path);
  if (method === 'POST' && action) {
    const cluster = found(action[1]!, testbed);
    const name = action[2] === 'listClusterAdminCredential' ? 'Admin' : 'User';
    const lookup = model.lookups[`azure-native:containerservice:listManagedCluster${name}Credentials`]!;
    return { body: lookup({ ...cluster.inputs }, testbed) };
  }
  return { body: described(found(path, testbed), testbed) };
}

/** Entra ID and Azure Resource Manager, as far as Coppice asks them. */
export const azureWeb: Web = {
  model,
  open(asked, accounts, store): Said | undefined {
    const { pathname } = asked.url;
    const tenant = /^(.*)\/v2\.0\/\.well-known\/openid-configuration$/.exec(pathname)?.[1];
    if (tenant !== undefined) return { body: aboutTenant(`${asked.url.origin}${tenant}`) };
    if (!pathname.endsWith('/oauth2/v2.0/token')) return undefined;
    const fields = fieldsOf(asked);
    const wrong = wrongRequest(fields);
    if (wrong) return { status: 400, body: { error: 'invalid_request', error_description: wrong } };
    const { client_id: key, client_secret: secret, client_assertion: assertion } = fields;
    const account = accounts.find((one) => one.key === key && (assertion !== undefined || one.secret === secret));
    const untrusted = assertion === undefined ? undefined : distrusted(assertion, account, store);
    if (untrusted) return untrusted;
    if (account) return tokenFor(account, asked, fields);
    const description = `AADSTS7000215: Invalid client secret provided. Ensure the secret being sent in the request is the client secret value, not the client secret ID, for a secret added to app '${key}'.`;
    return { status: 401, body: { error: 'invalid_client', error_description: description } };
  },
  caller: ({ headers, url }, accounts) =>
    accounts.find((account) => headers.authorization === `Bearer ${tokenOf(account, resourceOf(url))}`),
  about: ({ method, url }) => ({
    region: '',
    action:
      azureDNSAction(method, url) ??
      `${method} ${url.pathname.replaceAll(/\/(?:subscriptions|resourceGroups)\/[^/]+/gi, '')}`,
  }),
  needs: ({ method, url }) =>
    resourceOf(url) === 'management' ? neededAtAzure(method, decodeURIComponent(url.pathname)) : [],
  answer(asked, testbed, denied, store) {
    if (asked.url.pathname === FOLLOWED) return { body: { status: 'Succeeded' } };
    const said = answered(asked, testbed, denied, store);
    if (said.status !== 202 || resourceOf(asked.url) !== 'management') return said;
    const at = `${asked.url.origin}${FOLLOWED}`;
    return { ...said, headers: { ...said.headers, 'azure-asyncoperation': at, location: at, 'retry-after': '0' } };
  },
  refusals: {
    unknown: () => new Refused(401, 'InvalidAuthenticationToken', 'The access token is invalid.'),
    throttled: () =>
      new Refused(
        429,
        'ResourceRequestsThrottled',
        'Number of requests exceeded the limit. Please try again after a while.',
      ),
    denied: (action) =>
      new Refused(403, 'AuthorizationFailed', `The client does not have authorization to perform action '${action}'.`),
    closed: () => new Refused(403, 'RequestDisallowedByAzure', 'The resource was disallowed by Azure.'),
  },
  refusal(refused) {
    const { status, code, message } = refused;
    const error = { code, message };
    return { status, body: refused instanceof FlatRefusal ? error : { error } };
  },
};
