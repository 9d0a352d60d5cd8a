import { AccountChecks } from '../../accounts/account-checks.ts';
import type { BucketSource } from '../../accounts/bucket-account.ts';
import { IdentityTokens } from '../../accounts/identity-tokens.ts';
import { usersOf } from '../../accounts/shoot-account.ts';
import { type ShootAccounts, shootAccounts } from '../../accounts/shoot-accounts.ts';
import { type AccountsSide, usedCredentials } from '../../accounts/used-credentials.ts';
import type { CredentialsBinding } from '../../api/credentialsbinding.ts';
import type { WorkloadIdentity } from '../../api/workloadidentity.ts';
import { Informer } from '../../kube/informer.ts';
import { CREDENTIALSBINDINGS, SECRETS, type Secret, WORKLOADIDENTITIES } from '../../kube/resources.ts';
import type { Core, Part } from '../core.ts';
import { onlyStatusChanged } from '../status-writer.ts';
import { CREDENTIALS_SELECTOR, type CredentialsDependencies, reconcileCredentials } from './controller.ts';

/** The wired controller of credentials, with queries about accounts. */
export interface CredentialsWiring extends Part {
  readonly accounts: AccountsSide & { readonly checks: AccountChecks };
  readonly ofShoots: ShootAccounts;
  readonly ofBuckets: Pick<BucketSource, 'binding' | 'credentials'>;
  /** Calls the listener when credentials of a namespace may have changed. */
  onChange(listener: (namespace: string) => void): void;
  /** Calls the listener with each affected WorkerCluster when a cloud accepts credentials again. */
  onAccepted(listener: (cluster: string) => void): void;
}

/** Creates the controller of CredentialsBindings, WorkloadIdentities and credential Secrets. */
export function wireCredentials(core: Core): CredentialsWiring {
  const { garden, log, clusters, shoots, now } = core;
  const queue = core.queue('credentials');
  const bindings = new Informer<CredentialsBinding>(garden, CREDENTIALSBINDINGS, { log });
  const credentials = new Informer<Secret>(garden, SECRETS, { log, labelSelector: CREDENTIALS_SELECTOR });
  const identities = new Informer<WorkloadIdentity>(garden, WORKLOADIDENTITIES, { log });
  const accounts: CredentialsWiring['accounts'] = {
    ...core,
    bindings,
    credentials,
    identities,
    tokens: new IdentityTokens(garden, now),
    checks: new AccountChecks(),
    state: { garden, ...core.state },
  };
  const acceptedListeners = new Set<(cluster: string) => void>();
  const deps: CredentialsDependencies = {
    ...accounts,
    profiles: core.profiles,
    clouds: (profile) => core.provider(profile, true)?.managed,
    accepted(binding) {
      const users = usersOf(binding, clusters.list(), shoots.list());
      for (const key of users.clusters) for (const listener of acceptedListeners) listener(key);
      for (const key of users.shoots) core.queues.shoots.add(key);
    },
  };
  const onChange: CredentialsWiring['onChange'] = (listener) => {
    bindings.onChange((event) => {
      if (!onlyStatusChanged(event)) listener(event.object.metadata.namespace ?? '');
    });
    credentials.onChange(({ object }) => listener(object.metadata.namespace ?? ''));
    identities.onChange((event) => {
      if (!onlyStatusChanged(event)) listener(event.object.metadata.namespace ?? '');
    });
  };
  onChange((namespace) => queue.add(namespace));
  clusters.onChange((event) => {
    if (onlyStatusChanged(event)) return;
    if ([event.object, event.old].some((cluster) => cluster?.spec.credentialsRef || cluster?.spec.dns?.providers))
      queue.add(event.object.metadata.namespace ?? '');
  });
  return {
    accounts,
    ofShoots: shootAccounts(accounts, core.dns, core.profiles),
    ofBuckets: {
      binding: (namespace, name) => bindings.get(`${namespace}/${name}`),
      credentials: (use, stop) => usedCredentials(accounts, use, stop),
    },
    onChange,
    onAccepted: (listener) => void acceptedListeners.add(listener),
    caches: [bindings, credentials, identities],
    controllers: [
      {
        name: 'credentials',
        queue,
        concurrency: 8,
        reconcile: (namespace, stop) => reconcileCredentials(deps, namespace, stop),
      },
    ],
  };
}
