import type { KeyObject } from 'node:crypto';
import { GROUP, LABELS } from '../../api/group.ts';
import { KUBECONFIG_SUBRESOURCES, type KubeconfigRole, MAX_KUBECONFIG_REQUEST } from '../../api/kubeconfig-request.ts';
import type { Shoot } from '../../api/shoot.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Informer } from '../../kube/informer.ts';
import type { Log } from '../../kube/log.ts';
import { type CertificateSigningRequest, CSRS } from '../../kube/resources.ts';
import { certify, type KeyPair } from '../../pki/certificates.ts';
import { ADMIN_GROUP, VIEWER_GROUP } from '../../shoot/pki.ts';
import {
  forgetAt,
  isAnswered,
  type KubeconfigRefusal,
  type KubeconfigRequest,
  kubeconfigRefusalOf,
  MOST_STORED,
  readRequest,
  requesterOf,
  roleOf,
  userInCluster,
} from './decide.ts';

/** Dependencies for answering kubeconfig requests. */
interface KubeconfigDependencies {
  readonly garden: Pick<KubeClient, 'request' | 'mergePatch' | 'delete'>;
  /** With index BY_REQUESTER. */
  readonly requests: Informer<CertificateSigningRequest>;
  readonly clusters: Pick<Informer<WorkerCluster>, 'get'>;
  readonly shoots: Pick<Informer<Shoot>, 'get'>;
  readonly log: Log;
  now(): Date;
  /** Client CA of the cluster; undefined: none yet. */
  authority(shoot: Shoot, signal: AbortSignal): Promise<KeyPair | undefined>;
  /** See requestedKey. */
  publicKey(request: string): Promise<KeyObject | undefined>;
}

/** Index of requests by requesterOf. */
export const BY_REQUESTER = 'requester';
const GROUPS: Readonly<Record<KubeconfigRole, string>> = { admin: ADMIN_GROUP, viewer: VIEWER_GROUP };
const DAY_S = 24 * 3600;

const KEPT_LABELS: readonly string[] = [LABELS.workerCluster, LABELS.workerClusterNamespace];

/** Kept fields of a request: tenants write it, and it may be large. */
export function keptRequest(csr: CertificateSigningRequest): CertificateSigningRequest {
  const { name, uid, resourceVersion, creationTimestamp, labels = {} } = csr.metadata;
  const kept = Object.entries(labels).filter(([key]) => KEPT_LABELS.includes(key));
  const metadata = { name, uid, resourceVersion, creationTimestamp, labels: Object.fromEntries(kept) };
  const { signerName, username = '', request } = csr.spec;
  const conditions = csr.status?.conditions?.map(({ type, status }) => ({ type, status }));
  const answer = { ...(csr.status?.certificate && { certificate: 'issued' }), ...(conditions && { conditions }) };
  const { apiVersion, kind } = csr;
  const of = { apiVersion, kind, metadata: metadata as CertificateSigningRequest['metadata'], status: answer };
  if (isAnswered(csr) || !roleOf(csr)) return { ...of, spec: { signerName, username, request: '' } };
  return { ...of, spec: { ...csr.spec, request: request.length > MAX_KUBECONFIG_REQUEST ? '' : request } };
}

/** Answers one request, including one approved by an operator that ended before signing. */
export async function answerRequest(
  deps: KubeconfigDependencies,
  name: string,
  signal: AbortSignal,
): Promise<{ requeueAfterMs: number } | undefined> {
  const csr = deps.requests.get(name);
  const role = csr && roleOf(csr);
  if (!csr || !role) return undefined;
  if (isAnswered(csr) || +deps.now() >= forgetAt(csr)) return forget(deps, csr, signal);
  const recent = deps.requests.byIndex(BY_REQUESTER, requesterOf(csr)).length;
  if (recent > MOST_STORED) return remove(deps, csr, signal);
  const asked = readRequest(csr, role, recent);
  if ('reason' in asked) return refuse(deps, csr, asked, signal);
  const key = `${asked.namespace}/${asked.name}`;
  const shoot = deps.shoots.get(key);
  const view = { cluster: deps.clusters.get(key), shoot, allowed: await isAllowed(deps, csr, asked, signal) };
  const refusal = kubeconfigRefusalOf(asked, view);
  if (refusal) return refuse(deps, csr, refusal, signal);
  const publicKey = await deps.publicKey(Buffer.from(csr.spec.request, 'base64').toString());
  if (!publicKey) {
    const message =
      'the request is not signed by its own key, or the key is too weak: use EC P-256, Ed25519 or RSA of 2048 bits';
    return refuse(deps, csr, { reason: 'WrongKey', message }, signal);
  }
  const ca = await deps.authority(shoot!, signal);
  if (!ca) {
    const message = `WorkerCluster ${key} has no keys yet: wait until it has a control plane`;
    return refuse(deps, csr, { reason: 'NotReady', message }, signal);
  }
  const cert = certify(ca, publicKey, {
    commonName: userInCluster(asked.user),
    organizations: [GROUPS[role]],
    usages: ['client'],
    days: asked.seconds / DAY_S,
    now: deps.now(),
  });
  // The API server's CA follows, which the client needs and which is not secret.
  await sign(deps, csr, `${cert}${ca.cert}`, signal);
  const { user, seconds } = asked;
  deps.log.info({ user, role, cluster: key, seconds, request: name }, 'a kubeconfig was given out');
  return { requeueAfterMs: Math.max(0, forgetAt(csr) - +deps.now()) };
}

/** Whether the garden's authorizer allows it. */
async function isAllowed(
  { garden }: KubeconfigDependencies,
  { spec: { username: user, groups, uid, extra } }: CertificateSigningRequest,
  { namespace, name, role }: KubeconfigRequest,
  signal: AbortSignal,
): Promise<boolean> {
  const resourceAttributes = {
    group: GROUP,
    resource: 'workerclusters',
    subresource: KUBECONFIG_SUBRESOURCES[role],
    verb: 'create',
    namespace,
    name,
  };
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: { user, groups, uid, extra, resourceAttributes },
  };
  const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
  const { status } = await garden.request<{ status?: { allowed?: boolean } }>('POST', path, { body, signal });
  return status?.allowed === true;
}

/** Approves, then signs, as Kubernetes requires; either write fails after a concurrent change. */
async function sign(
  deps: KubeconfigDependencies,
  csr: CertificateSigningRequest,
  chain: string,
  signal: AbortSignal,
): Promise<void> {
  let { resourceVersion } = csr.metadata;
  if (!csr.status?.conditions?.some(({ type }) => type === 'Approved')) {
    const why = { reason: 'MayHaveKubeconfig' as const, message: 'whoever asks may have this kubeconfig' };
    ({ resourceVersion } = (await tell(deps, csr, 'approval', 'Approved', why, signal)).metadata);
  }
  const certificate = Buffer.from(chain).toString('base64');
  const answer = { metadata: { resourceVersion }, status: { certificate } };
  await patch(deps, csr, 'status', answer, signal);
}

async function refuse(
  deps: KubeconfigDependencies,
  csr: CertificateSigningRequest,
  refusal: KubeconfigRefusal,
  signal: AbortSignal,
): Promise<{ requeueAfterMs: number }> {
  const isApproved = csr.status?.conditions?.some(({ type }) => type === 'Approved');
  // An approved request cannot be denied any more.
  if (isApproved) await tell(deps, csr, 'status', 'Failed', refusal, signal);
  else await tell(deps, csr, 'approval', 'Denied', refusal, signal);
  deps.log.info({ user: csr.spec.username, request: csr.metadata.name, ...refusal }, 'no kubeconfig was given out');
  return { requeueAfterMs: Math.max(0, forgetAt(csr) - +deps.now()) };
}

async function tell(
  deps: KubeconfigDependencies,
  csr: CertificateSigningRequest,
  subresource: 'approval' | 'status',
  type: string,
  { reason, message }: KubeconfigRefusal | { readonly reason: 'MayHaveKubeconfig'; readonly message: string },
  signal: AbortSignal,
): Promise<CertificateSigningRequest> {
  const now = deps.now().toISOString();
  const said = { type, status: 'True', reason, message, lastUpdateTime: now, lastTransitionTime: now };
  const conditions = [...(csr.status?.conditions ?? []), said];
  return patch(
    deps,
    csr,
    subresource,
    { metadata: { resourceVersion: csr.metadata.resourceVersion }, status: { conditions } },
    signal,
  );
}

async function patch(
  { garden, requests }: KubeconfigDependencies,
  { metadata: { name } }: CertificateSigningRequest,
  subresource: 'approval' | 'status',
  answer: object,
  signal: AbortSignal,
): Promise<CertificateSigningRequest> {
  const changed = await garden.mergePatch<CertificateSigningRequest>(CSRS, name, undefined, answer, {
    subresource,
    signal,
  });
  requests.absorb(changed);
  return changed;
}

/** Deletes a request: tenants create them, so none is kept for long. */
async function forget(
  deps: KubeconfigDependencies,
  csr: CertificateSigningRequest,
  signal: AbortSignal,
): Promise<{ requeueAfterMs: number } | undefined> {
  const left = forgetAt(csr) - +deps.now();
  if (left > 0) return { requeueAfterMs: left };
  return remove(deps, csr, signal);
}

async function remove(
  { garden }: KubeconfigDependencies,
  { metadata: { name, uid } }: CertificateSigningRequest,
  signal: AbortSignal,
): Promise<undefined> {
  await garden.delete(CSRS, name, undefined, { signal, preconditions: { ...(uid && { uid }) } });
}
