import { isDeepStrictEqual } from 'node:util';
import { configurationProblem, dependencyNotReady, notYetConfigured } from '../api/errors.ts';
import { API_VERSION, LABELS } from '../api/group.ts';
import { identityAccountName } from '../api/names.ts';
import { audiencesOf, type WorkloadIdentity } from '../api/workloadidentity.ts';
import type { KubeClient } from '../kube/client.ts';
import { KubeApiError } from '../kube/errors.ts';
import { type KubeObject, pathOf, SERVICEACCOUNTS } from '../kube/resources.ts';
import { claimsOf } from '../pki/token-claims.ts';

/** Seconds: clouds give credentials for an hour too, and what leaks is soon worth nothing. */
const LIFE_SECONDS = 3600;
/** The part of its life after which a token is replaced: what is begun with one may show it again a while later. */
const RENEW_AFTER = 0.5;
/** After a failure the old token, while it is good, is given out for so long before another try. */
const TRY_AGAIN_MS = 60_000;
/** Who has not made a token by then will not make it. */
const PATIENCE_MS = 30_000;

/** A token that proves to a cloud who somebody is. */
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
  /** Unix milliseconds; in the beginning nobody knows. */
  renewAt: number;
  endsAt: number;
}

/** Who an identity is to a cloud, by its name and namespace alone. */
export const subjectOf = ({ metadata: { name, namespace } }: WorkloadIdentity): string =>
  `system:serviceaccount:${namespace}:${identityAccountName(name)}`;

/** The ServiceAccount of an identity. It may do nothing in the garden, and no pod gets its token by accident. */
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

/** Kubernetes makes nothing in a namespace that is being deleted, tokens neither. */
const namespaceGoing =
  ({ metadata: { namespace } }: WorkloadIdentity) =>
  (error: unknown): never => {
    if (!(error instanceof KubeApiError) || !error.isNamespaceTerminating) throw error;
    throw notYetConfigured(
      `namespace ${namespace} is being deleted, and no tokens are made there any more`,
      'What is left in the cloud "coppice sweep" removes, by a binding for the same account in another namespace.',
    );
  };

/** Has the garden make tokens of WorkloadIdentities. Equal questions are asked once, until half of a token's life is over. */
export class IdentityTokens {
  readonly #garden: Pick<KubeClient, 'request' | 'getOrUndefined' | 'apply'>;
  readonly #now: () => Date;
  readonly #kept = new Map<string, Kept>();

  constructor(garden: Pick<KubeClient, 'request' | 'getOrUndefined' | 'apply'>, now: () => Date) {
    this.#garden = garden;
    this.#now = now;
  }

  /**
   * A token that is good for half an hour at least; where the garden gives no new one (the namespace is going, and the clusters in it
   * are still to be taken away), the old one to its end. Makes the ServiceAccount where it is missing. Rejects with CoppiceErrors.
   */
  token(identity: WorkloadIdentity): Promise<IdentityToken> {
    const now = +this.#now();
    for (const [key, { endsAt }] of this.#kept) if (endsAt <= now) this.#kept.delete(key);
    const key = JSON.stringify([identity.metadata.uid, audiencesOf(identity.spec)]);
    const known = this.#kept.get(key);
    if (known && now < known.renewAt) return known.made;
    const kept: Kept = {
      // Not with the signal of the one who happens to ask first: the answer is for all.
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
    // The server may grant less than was asked for.
    return { token: status.token, issuer, subject, audiences, expiresAt: Date.parse(status.expirationTimestamp) };
  }

  /** Makes the ServiceAccount be as it should; no write when it is so already. Resolves to it. */
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
    // What others made it for would be known to the cloud as well.
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
