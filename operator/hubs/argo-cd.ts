import { GROUP, LABELS } from '../api/group.ts';
import type { HubSpec } from '../api/hub.ts';
import { decodeSecret, type KubeObject, keyOf, type Resource, SECRETS, type Secret } from '../kube/resources.ts';
import {
  type HubAmounts,
  type HubType,
  isForeign,
  type Member,
  type Place,
  type Reader,
  takenOver,
  type WantedObject,
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
/**
 * Since Argo CD 3.4 its controller ignores Applications of a cluster whose Secret has this annotation, even one that is
 * being deleted.
 */
const SKIP = 'argocd.argoproj.io/skip-reconcile';
/** Label by which generators exclude the cluster; the value is the reason. */
const CLOSED = `${LABELS.membership}-closed`;
/** Prefix of annotations with the cluster's capacity, for generator templates. */
const CAPACITY = `${GROUP}/capacity.`;
const ACCESS = 'access';
const DAY = 24 * 3600;

/** The fields of an Application that are read. */
interface Placed {
  /** `namespace/name`. */
  readonly key: string;
  readonly isGoing: boolean;
  /** Its finalizer deletes its resources in the cluster before the Application itself. */
  readonly isHeld: boolean;
}

interface Seen {
  readonly secret: Secret | undefined;
  /** Read only when the cluster leaves: Applications with this destination. */
  readonly applications: readonly Placed[];
  /** Read only before the cluster has joined: another Secret with its name or URL, for messages. */
  readonly twin?: string | undefined;
}

/** State written on a member's Secret. */
type Form = 'Initializing' | 'Open' | 'Withdrawing';

/** Argo CD: a cluster is a Secret in Argo CD's namespace; its labels select the Applications generated for it. */
export const argoCDHub: HubType<Seen> = {
  type: 'ArgoCD',
  // Generators name Applications after the cluster, with a prefix or suffix: those are label values (63) and Helm
  // release names (53).
  nameLimit: 48,
  watches: [],
  dials: () => 'HubToMember',

  async validate(hub) {
    if (await hub.serves(APPLICATIONS)) return [];
    return [`the hub serves no ${APPLICATIONS.plural}.${APPLICATIONS.group}/${APPLICATIONS.version}: install Argo CD`];
  },

  // Argo CD reads the token from the Secret at each connection, so a short-lived one suffices.
  identities: (member, { argoCD }) => [
    {
      name: ACCESS,
      on: 'member',
      account: { namespace: 'kube-system', name: accountName(member) },
      rules: rulesOf(argoCD?.rights),
      life: DAY,
    },
  ],

  // Argo CD identifies clusters by URL.
  async foreignEntry(hub, { endpoint }, spec) {
    const { namespace } = secretPlace({ name: '' }, spec);
    const secrets = (await hub.list(SECRETS, { namespace, labelSelector: CLUSTER_SECRETS })) as Secret[];
    const server = urlOf(endpoint.server);
    const found = secrets.find((one) => isForeign(one) && urlOf(decodeSecret(one.data).server ?? '') === server);
    if (!found) return undefined;
    const { name } = found.metadata;
    const called = decodeSecret(found.data).name;
    // Applications refer to their cluster by name, and would lose it.
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
      // With two Secrets for one URL, Argo CD deploys through either of them: the other cluster's workloads would
      // end up here.
      { type: 'CredentialsReady', waiting: secret ? undefined : twin },
      { type: 'Registered', apply: wanted, waiting: twin },
      { type: 'CapacityVisible' },
    ];
  },

  leave(member, spec, { secret, applications }) {
    const place = secretPlace(member, spec);
    const held = applications.filter(({ isHeld }) => isHeld).map(({ key }) => key);
    // Without the Secret Argo CD forgets its Applications' resources and leaves them in the cluster.
    const waiting =
      held.length > 0
        ? `Application ${held.join(', ')} is still to be deleted, by its ApplicationSet or by who made it, before Secret ${place.name} is`
        : undefined;
    return [
      { places: [], apply: isThere(secret) ? [written(secret, spec, member, 'Withdrawing')] : [] },
      { places: [place], waiting },
    ];
  },

  // Without the labels generators delete their Applications, which delete their resources.
  drains: () => 'Deletes',

  cordon(member, spec, { secret, applications }) {
    if (!isThere(secret) || secret.metadata.labels?.[CLOSED]) return [];
    // An Application that is being deleted would never finish while its cluster is skipped.
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

/** @param skip makes Argo CD ignore the cluster */
function clusterSecret(
  member: Member,
  spec: HubSpec,
  token: string,
  form: Form,
  skip = form === 'Initializing',
): WantedObject {
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
 * The existing Secret in another form. While it is Open, its labels and annotations stay as generators saw them: a
 * change of the cluster, or its deletion, must not delete what is deployed on it.
 */
function written(secret: Secret, spec: HubSpec, member: Member, form: Form, skip = false): WantedObject {
  const { metadata, data } = secret;
  const { [SECRET_TYPE]: _, [LABELS.membership]: __, [LABELS.managedBy]: ___, ...labels } = metadata.labels ?? {};
  const capacity = form === 'Open' ? capacityIn(secret) : {};
  const wanted = clusterSecret({ ...member, labels, capacity }, spec, '', form, skip);
  return { ...wanted, object: { ...wanted.object, ...(data && { data }) } };
}

const capacityIn = (secret: Secret | undefined): HubAmounts =>
  Object.fromEntries(
    Object.entries(secret?.metadata.annotations ?? {})
      .filter(([key]) => key.startsWith(CAPACITY))
      .map(([key, value]) => [key.slice(CAPACITY.length), value]),
  );

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** URL normalized as Argo CD compares it. */
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
    const other = decodeSecret((secret as Secret).data);
    const same =
      urlOf(other.server ?? '') === server ? `URL ${server}` : other.name === member.name ? `name ${name}` : '';
    if (same)
      return `Secret ${namespace}/${secret.metadata.name} of the hub is a cluster with ${same} already: delete it, or give member.endpoint of the Hub another URL`;
  }
  return undefined;
}
