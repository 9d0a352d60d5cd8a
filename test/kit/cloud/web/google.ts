import { kindOf } from '../gcp/kinds.ts';
import { gcp as model } from '../gcp/model.ts';
import { type CloudResource, isMade, type Properties, type Scene } from '../model.ts';
import { computeMachines } from './google-machines.ts';
import { fieldsOf, Refused, type Said, type Web } from './server.ts';

/** A token names the key that it was given for; the plugins take it too. */
const PREFIX = 'ya29.';

/** `compute.googleapis.com/Network`: as Cloud Asset Inventory names types. */
const assetType = ({ type }: CloudResource): string => {
  const { service, noun } = kindOf(type);
  return `${service}.googleapis.com/${noun}`;
};

/** Path of a resource in its API; for node pools it is not the id that import takes. */
const pathOf = ({ id, type, inputs, name, region }: CloudResource, project: string): string =>
  type === 'gcp:container:NodePool'
    ? `projects/${project}/locations/${inputs.location ?? region}/clusters/${inputs.cluster}/nodePools/${name}`
    : id;

function described(resource: CloudResource, scene: Scene): Properties {
  const outputs = scene.outputs(resource);
  if (resource.type === 'gcp:container:NodePool') return { ...outputs, config: resource.inputs.nodeConfig };
  if (resource.type === 'gcp:container:Cluster') {
    const { masterVersion: currentMasterVersion, nodeLocations: locations, enableAutopilot } = outputs;
    const status = isMade(resource, scene) ? 'RUNNING' : 'PROVISIONING';
    return { ...outputs, status, currentMasterVersion, locations, autopilot: { enabled: enableAutopilot === true } };
  }
  if (resource.type !== 'gcp:compute:Router') return outputs;
  const nats = scene.all('gcp:compute:RouterNat').filter(({ inputs }) => inputs.router === resource.name);
  return { ...outputs, nats: nats.map(({ name }) => ({ name })) };
}

const tokenFor = (key: string): Said => ({
  body: { token_type: 'Bearer', expires_in: 3599, access_token: `${PREFIX}${key}` },
});

/** Whose assertion it is; its signature is looked at by those who know the key. */
function issuerOf(assertion: string | undefined): string | undefined {
  try {
    return JSON.parse(Buffer.from(assertion!.split('.')[1]!, 'base64url').toString()).iss;
  } catch {
    return undefined;
  }
}

/** Google's APIs, as far as Coppice asks them. */
export const googleWeb: Web = {
  model,
  open(asked, accounts): Said | undefined {
    if (asked.url.pathname !== '/token') return undefined;
    const issuer = issuerOf(fieldsOf(asked).assertion);
    const account = accounts.find(({ principal }) => principal === issuer);
    if (account) return tokenFor(account.key);
    return { status: 400, body: { error: 'invalid_grant', error_description: 'Invalid JWT Signature.' } };
  },
  caller: ({ headers }, accounts) => accounts.find(({ key }) => headers.authorization === `Bearer ${PREFIX}${key}`),
  about: ({ method, url }) => ({
    region: /\/(?:regions|locations)\/([^/]+)/.exec(url.pathname)?.[1] ?? '',
    action: `${method} ${url.pathname.replace(/projects\/[^/:]+/, 'projects')}`,
  }),
  answer({ url, body }, scene, denied, store) {
    const { account } = scene.caller;
    const path = decodeURIComponent(url.pathname).replace(/^\/(?:compute\/)?v1\//, '');
    if (path === `projects/${account}:testIamPermissions`) {
      const { permissions } = JSON.parse(body) as { permissions: string[] };
      return { body: { permissions: permissions.filter((one) => !denied.includes(one)) } };
    }
    if (path === `projects/${account}:searchAllResources`) {
      const results = scene.all().map((one) => ({
        name: `//${kindOf(one.type).service}.googleapis.com/${pathOf(one, account)}`,
        assetType: assetType(one),
        location: one.region,
        labels: model.tags(one),
        description: one.inputs.description,
        createTime: new Date(one.createdAt).toISOString(),
      }));
      return { body: { results } };
    }
    const machines = computeMachines(path, url.searchParams, body, scene, store);
    if (machines) return { body: machines };
    const resource = scene.all().find((one) => pathOf(one, account) === path);
    if (!resource) throw new Refused(404, 'notFound', `The resource '${path}' was not found`);
    return { body: described(resource, scene) };
  },
  refusals: {
    unknown: () => new Refused(401, 'authError', 'Request had invalid authentication credentials.'),
    throttled: () => new Refused(429, 'rateLimitExceeded', "Quota exceeded for quota metric 'Queries'."),
    denied: (action) => new Refused(403, 'forbidden', `Required permission for '${action}'`),
    closed: () => new Refused(403, 'forbidden', 'Permission denied on location (or it may not exist).'),
  },
  refusal: ({ status, code, message }) => ({
    status,
    body: { error: { code: status, message, errors: [{ reason: code, message, domain: 'global' }] } },
  }),
};
