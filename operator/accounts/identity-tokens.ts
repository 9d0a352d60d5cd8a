import { isDeepStrictEqual } from 'node:util';
import { configurationProblem, dependencyNotReady, notYetConfigured } from '../api/errors.ts';
import { API_VERSION, LABELS } from '../api/group.ts';
import { identityAccountName } from '../api/names.ts';
import { audiencesOf, type WorkloadIdentity } from '../api/workloadidentity.ts';
import type { KubeClient } from '../kube/client.ts';
import { KubeApiError } from '../kube/errors.ts';
import { type KubeObject, pathOf, SERVICEACCOUNTS } from '../kube/resources.ts';
import { claimsOf } from '../pki/token-claims.ts';

/** Seconds: cloud credentials last an hour too, and a leaked token soon becomes worthless. */
const LIFE_SECONDS = 3600;
/**
 * Share of its life after which a token is replaced: an operation that began with a token may present it again later.
 */
const RENEW_AFTER = 0.5;
/** After a failed renewal the old token, while valid, is reused for this long before the next attempt. */
const TRY_AGAIN_MS = 60_000;
/** Longest time the garden may take to issue a token. */
const PATIENCE_MS = 30_000;

/** A token that authenticates a WorkloadIdentity to a cloud. */
export interface IdentityToken {
  readonly token: string;
  readonly issuer: string;
  readonly subject: string;
  readonly audiences: readonly string[];
}

interface TokenRequest {
  status: { token: string; expirationTimestamp: string };
}

interface Kept {
  readonly made: Promise<IdentityToken>;
  /** Unix milliseconds; unset until the first token has been issued. */
  renewAt: number;
  endsAt: number;
}

/** Subject of an identity's tokens, derived from its name and namespace alone. */
export const subjectOf = ({ metadata: { name, namespace } }: WorkloadIdentity): string =>
  `system:serviceaccount:${namespace}:${identityAccountName(name)}`;

/** The ServiceAccount of an identity. It has no rights in the garden, and its token is not mounted into pods. */
export function identityAccount({ metadata: { name, namespace = '', uid = '' } }: WorkloadIdentity): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: {
      name: identityAccountName(name),
      namespace,
      labels: { [LABELS.managedBy]: 'coppice' },
      ownerReferences: [
        { apiVersion: API_VERSION, kind: 'WorkloadIdentity', name, uid, controller: true, blockOwnerDeletion: false },
      ],
    },
    automountServiceAccountToken: false,
  };
}

/** Kubernetes refuses to create anything, tokens included, in a namespace that is being deleted. */
const namespaceGoing =
  ({ metadata: { namespace } }: WorkloadIdentity) =>
  (error: unknown): never => {
    if (!(error instanceof KubeApiError) || !error.isNamespaceTerminating) throw error;
    throw notYetConfigured(
      `namespace ${namespace} is being deleted, and no tokens are made there any more`,
      'What is left in the cloud "coppice sweep" removes, by a binding for the same account in another namespace.',
    );
  };

/**
 * Requests tokens of WorkloadIdentities from the garden. Equal requests share one token until half of its life is over.
 */
export class IdentityTokens {
  readonly #garden: Pick<KubeClient, 'request' | 'getOrUndefined' | 'apply'>;
  readonly #now: () => Date;
  readonly #kept = new Map<string, Kept>();

  constructor(garden: Pick<KubeClient, 'request' | 'getOrUndefined' | 'apply'>, now: () => Date) {
    this.#garden = garden;
    this.#now = now;
  }

  /**
   * A token valid for at least half an hour. Where the garden refuses a new one (the namespace is being deleted and its
   * clusters must still be removed), the old token is used until it expires. Creates the ServiceAccount when it is
   * missing. Rejects with CoppiceErrors.
   */
  token(identity: WorkloadIdentity): Promise<IdentityToken> {
    const now = +this.#now();
    for (const [key, { endsAt }] of this.#kept) if (endsAt <= now) this.#kept.delete(key);
    const key = JSON.stringify([identity.metadata.uid, audiencesOf(identity.spec)]);
    const known = this.#kept.get(key);
    if (known && now < known.renewAt) return known.made;
    const kept: Kept = {
      // The first caller's signal is not passed on: the answer is shared by all callers.
      made: this.#make(identity, AbortSignal.timeout(PATIENCE_MS)).then(
        ({ expiresAt, ...token }) => {
          kept.renewAt = now + (expiresAt - now) * RENEW_AFTER;
          kept.endsAt = expiresAt;
          return token;
        },
        (error: unknown) => {
          if (!known) throw error;
          kept.renewAt = now + TRY_AGAIN_MS;
          kept.endsAt = known.endsAt;
          return known.made;
        },
      ),
      renewAt: Number.POSITIVE_INFINITY,
      endsAt: Number.POSITIVE_INFINITY,
    };
    this.#kept.set(key, kept);
    kept.made.catch(() => this.#kept.delete(key));
    return kept.made;
  }

  async #make(identity: WorkloadIdentity, signal: AbortSignal): Promise<IdentityToken & { expiresAt: number }> {
    const account = await this.ensureAccount(identity, signal);
    const { name, namespace } = account.metadata;
    const audiences = audiencesOf(identity.spec);
    const { status } = await this.#garden
      .request<TokenRequest>('POST', pathOf(SERVICEACCOUNTS, namespace, name, 'token'), {
        body: {
          apiVersion: 'authentication.k8s.io/v1',
          kind: 'TokenRequest',
          spec: { audiences, expirationSeconds: LIFE_SECONDS },
        },
        signal,
      })
      .catch(namespaceGoing(identity));
    const claims = claimsOf(status.token);
    if (!claims)
      throw dependencyNotReady(`the garden gave ServiceAccount ${namespace}/${name} no token that can be read`);
    const { issuer, subject } = claims;
    // The API server may grant a shorter life than requested.
    return { token: status.token, issuer, subject, audiences, expiresAt: Date.parse(status.expirationTimestamp) };
  }

  /** Creates or corrects the ServiceAccount; no write when nothing differs. Resolves to the ServiceAccount. */
  async ensureAccount(identity: WorkloadIdentity, signal: AbortSignal): Promise<KubeObject> {
    const wanted = identityAccount(identity);
    const { name, namespace, labels = {}, ownerReferences = [] } = wanted.metadata;
    const live = await this.#garden.getOrUndefined(SERVICEACCOUNTS, name, namespace, { signal });
    if (!live) return this.#garden.apply(wanted, { signal }).catch(namespaceGoing(identity));
    const [owner] = ownerReferences;
    const owners = live.metadata.ownerReferences ?? [];
    const own = owners.find(({ uid }) => uid === owner?.uid);
    if (!own && owners.some((other) => other.kind === owner?.kind && other.name === owner.name))
      throw notYetConfigured(
        `ServiceAccount ${namespace}/${name} is of an earlier WorkloadIdentity of this name`,
        'Wait: Kubernetes deletes it with its owner.',
      );
    // The cloud trusts the account by name, so a ServiceAccount that somebody else uses would get access to the
    // cloud too.
    if (!own)
      throw configurationProblem(
        `ServiceAccount ${namespace}/${name} was not made for WorkloadIdentity ${namespace}/${identity.metadata.name}`,
        'Delete it, or give the identity another name.',
      );
    const same =
      isDeepStrictEqual(own, owner) &&
      live.automountServiceAccountToken === false &&
      Object.entries(labels).every(([label, value]) => live.metadata.labels?.[label] === value);
    return same ? live : this.#garden.apply(wanted, { signal });
  }
}
