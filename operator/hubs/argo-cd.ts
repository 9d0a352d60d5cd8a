import { GROUP, LABELS } from '../api/group.ts';
import type { HubSpec } from '../api/hub.ts';
import { decoded, type KubeObject, keyOf, type Resource, SECRETS, type Secret } from '../kube/resources.ts';
import {
  type Amounts,
  type HubType,
  isForeign,
  type Member,
  type Place,
  type Reader,
  takenOver,
  type Wanted,
} from './contract.ts';
import { rangeNotes } from './range-notes.ts';
import { accountName, rulesOf } from './rights.ts';
import { secretWith } from './secrets.ts';

export const APPLICATIONS: Resource = {
  group: 'argoproj.io',
  version: 'v1alpha1',
  plural: 'applications',
  kind: 'Application',
  namespaced: true,
};

const SECRET_TYPE = 'argocd.argoproj.io/secret-type';
const CLUSTER_SECRETS = `${SECRET_TYPE}=cluster`;
/** Since Argo CD 3.4 its controller touches no Application of a cluster whose Secret has it, not even one that is being deleted. */
const SKIP = 'argocd.argoproj.io/skip-reconcile';
/** Why generators are to leave the cluster out. */
const CLOSED = `${LABELS.membership}-closed`;
/** Annotations for the templates of generators: what the cluster offers. */
const CAPACITY = `${GROUP}/capacity.`;
const ACCESS = 'access';
const DAY = 24 * 3600;

/** What is looked at of an Application. */
interface Placed {
  /** `namespace/name`. */
  readonly key: string;
  readonly isGoing: boolean;
  /** It ends in the cluster before it ends in the hub. */
  readonly isHeld: boolean;
}

interface Seen {
  readonly secret: Secret | undefined;
  /** Only when the cluster leaves: Applications whose destination it is. */
  readonly applications: readonly Placed[];
  /** Only before the cluster has joined: another Secret with its name or its URL, in words. */
  readonly twin?: string | undefined;
}

/** What a member's Secret says of its state. */
type Form = 'Initializing' | 'Open' | 'Withdrawing';

/** Argo CD: a cluster is a Secret beside it, and its labels decide which Applications are generated for it. */
export const argoCDHub: HubType<Seen> = {
  type: 'ArgoCD',
  // Generators name Applications after the cluster, with something before or behind: those are label values of 63, and Helm releases of 53.
  nameLimit: 48,
  watches: [],
  dials: () => 'HubToMember',

  async validate(hub) {
    if (await hub.serves(APPLICATIONS)) return [];
    return [`the hub serves no ${APPLICATIONS.plural}.${APPLICATIONS.group}/${APPLICATIONS.version}: install Argo CD`];
  },

  // It reads the token out of the Secret at each connection, so a short-lived one will do.
  identities: (member, { argoCD }) => [
    {
      name: ACCESS,
      on: 'member',
      account: { namespace: 'kube-system', name: accountName(member) },
      rules: rulesOf(argoCD?.rights),
      life: DAY,
    },
  ],

  // It knows clusters by their URL alone.
  async foreignEntry(hub, { endpoint }, spec) {
    const { namespace } = secretPlace({ name: '' }, spec);
    const secrets = (await hub.list(SECRETS, { namespace, labelSelector: CLUSTER_SECRETS })) as Secret[];
    const server = urlOf(endpoint.server);
    const found = secrets.find((one) => isForeign(one) && urlOf(decoded(one.data).server ?? '') === server);
    if (!found) return undefined;
    const { name } = found.metadata;
    const called = decoded(found.data).name;
    // Applications name their cluster so, and would lose it.
    const whyNot = called === name ? undefined : `Secret ${namespace}/${name} of the hub calls the cluster ${called}`;
    return { name, places: [takenOver(SECRETS, found)], ...(whyNot && { whyNot }) };
  },

  async observe(hub, _cluster, member, spec) {
    const { namespace, name } = secretPlace(member, spec);
    const [secret, applications, twin] = await Promise.all([
      hub.get(SECRETS, name, namespace) as Promise<Secret | undefined>,
      member.closed === 'Leaving' ? applicationsOf(hub, member) : [],
      member.closed === 'Initializing' ? twinOf(hub, member, spec) : undefined,
    ]);
    return { secret, applications, twin };
  },

  join(member, spec, { secret, twin }) {
    const token = member.credentials[ACCESS]?.token;
    const wanted = token ? [clusterSecret(member, spec, token, member.closed ? 'Initializing' : 'Open')] : [];
    return [
      { type: 'IdentityReady' },
      // Two Secrets with one URL, and Argo CD deploys by either of them: the other cluster's work would end up here.
      { type: 'CredentialsReady', waiting: secret ? undefined : twin },
      { type: 'Registered', apply: wanted, waiting: twin },
      { type: 'CapacityVisible' },
    ];
  },

  leave(member, spec, { secret, applications }) {
    const place = secretPlace(member, spec);
    const held = applications.filter(({ isHeld }) => isHeld).map(({ key }) => key);
    // Without the Secret Argo CD forgets what it has deployed, and leaves it in the cluster.
    const waiting =
      held.length > 0
        ? `Application ${held.join(', ')} is still to be deleted, by its ApplicationSet or by who made it, before Secret ${place.name} is`
        : undefined;
    return [
      { places: [], apply: isThere(secret) ? [written(secret, spec, member, 'Withdrawing')] : [] },
      { places: [place], waiting },
    ];
  },

  // Without the labels generators delete their Applications, and those what they have deployed.
  drains: () => 'Deletes',

  cordon(member, spec, { secret, applications }) {
    if (!isThere(secret) || secret.metadata.labels?.[CLOSED]) return [];
    // An Application that is being deleted would never end while its cluster is skipped.
    return [written(secret, spec, member, 'Open', !applications.some(({ isGoing }) => isGoing))];
  },

  placements: (_member, { applications }) => applications.map(({ key }) => `Application ${key}`),

  capacity: (_member, { secret }) => capacityIn(secret),
};

const isThere = (secret: Secret | undefined): secret is Secret =>
  secret !== undefined && !secret.metadata.deletionTimestamp;

const secretPlace = (member: Pick<Member, 'name'>, { argoCD }: HubSpec): Place & { namespace: string } => ({
  on: 'hub',
  resource: SECRETS,
  namespace: argoCD?.namespace ?? 'argocd',
  name: member.name,
});

/** @param skip has Argo CD leave the cluster alone */
function clusterSecret(
  member: Member,
  spec: HubSpec,
  token: string,
  form: Form,
  skip = form === 'Initializing',
): Wanted {
  const { server, ca, proxyURL } = member.endpoint;
  const config = {
    bearerToken: token,
    tlsClientConfig: { insecure: false, ...(ca && { caData: base64(ca) }) },
    ...(proxyURL && { proxyUrl: proxyURL }),
  };
  const project = spec.argoCD?.project;
  const capacity = Object.entries(member.capacity).map(([resource, amount]) => [`${CAPACITY}${resource}`, amount]);
  const texts = {
    name: member.name,
    server: urlOf(server),
    config: JSON.stringify(config),
    ...(project && { project }),
  };
  return secretWith(secretPlace(member, spec), texts, {
    labels: { ...(form === 'Open' ? member.labels : { [CLOSED]: form }), [SECRET_TYPE]: 'cluster' },
    annotations: { ...rangeNotes(member.ranges), ...Object.fromEntries(capacity), ...(skip && { [SKIP]: 'true' }) },
  });
}

/**
 * The Secret as it stands, in another form. While it is Open, its labels and annotations stay as generators saw them: that the cluster has
 * others by now, or is gone, must not delete what is deployed on it.
 */
function written(secret: Secret, spec: HubSpec, member: Member, form: Form, skip = false): Wanted {
  const { metadata, data } = secret;
  const { [SECRET_TYPE]: _, [LABELS.membership]: __, [LABELS.managedBy]: ___, ...labels } = metadata.labels ?? {};
  const capacity = form === 'Open' ? capacityIn(secret) : {};
  const wanted = clusterSecret({ ...member, labels, capacity }, spec, '', form, skip);
  return { ...wanted, object: { ...wanted.object, ...(data && { data }) } };
}

const capacityIn = (secret: Secret | undefined): Amounts =>
  Object.fromEntries(
    Object.entries(secret?.metadata.annotations ?? {})
      .filter(([key]) => key.startsWith(CAPACITY))
      .map(([key, value]) => [key.slice(CAPACITY.length), value]),
  );

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** As Argo CD compares them. */
const urlOf = (server: string): string => server.replace(/\/+$/, '');

async function applicationsOf(hub: Reader, member: Member): Promise<Placed[]> {
  const applications = await hub.list(APPLICATIONS);
  return applications
    .filter((one) => {
      const { destination = {} } = (one.spec ?? {}) as { destination?: { name?: string; server?: string } };
      return destination.server
        ? urlOf(destination.server) === urlOf(member.endpoint.server)
        : destination.name === member.name;
    })
    .map(({ metadata }: KubeObject) => ({
      key: keyOf({ metadata }),
      isGoing: metadata.deletionTimestamp !== undefined,
      isHeld: (metadata.finalizers ?? []).length > 0,
    }));
}

async function twinOf(hub: Reader, member: Member, spec: HubSpec): Promise<string | undefined> {
  const { namespace, name } = secretPlace(member, spec);
  const server = urlOf(member.endpoint.server);
  for (const secret of await hub.list(SECRETS, { namespace, labelSelector: CLUSTER_SECRETS })) {
    if (secret.metadata.name === name) continue;
    const other = decoded((secret as Secret).data);
    const same =
      urlOf(other.server ?? '') === server ? `URL ${server}` : other.name === member.name ? `name ${name}` : '';
    if (same)
      return `Secret ${namespace}/${secret.metadata.name} of the hub is a cluster with ${same} already: delete it, or give member.endpoint of the Hub another URL`;
  }
  return undefined;
}
