import { type CloudProfile, providerOf } from '../operator/api/cloudprofile.ts';
import { configurationProblem } from '../operator/api/errors.ts';
import { awsProvider } from './aws/index.ts';
import { PERMISSIONS as AWS_PERMISSIONS } from './aws/permissions.ts';
import { PERMISSIONS as AZURE_PERMISSIONS } from './azure/account.ts';
import { azureProvider } from './azure/index.ts';
import type { Provider } from './contract.ts';
import { PERMISSIONS as GCP_PERMISSIONS } from './gcp/account.ts';
import { gcpProvider } from './gcp/index.ts';
import { local } from './local/index.ts';
import { PulumiRunner, type RunnerOptions } from './pulumi/runner.ts';
import type { StackRunner } from './pulumi/stack-runner.ts';
import { simulated } from './simulated/index.ts';

/** Permissions that clusters need, by cloud. */
export const PERMISSIONS = { aws: AWS_PERMISSIONS, gcp: GCP_PERMISSIONS, azure: AZURE_PERMISSIONS } as const;

/** Providers without external dependencies. */
const PROVIDERS: ReadonlyMap<string, Provider> = new Map(
  [local, simulated].map((provider) => [provider.name, provider]),
);

/** All providers of this build. */
export interface Providers {
  named(name: string): Provider | undefined;
  /** Ends running programs; see PulumiRunner.close. */
  close(graceMs?: number): Promise<void>;
}

/** Why provider local makes no clusters unless the platform allows it. */
const NOT_ALLOWED =
  'machines of provider local are privileged pods of the seed, and no boundary between tenants. Whoever runs this garden must allow them: localMachines.allowed in the values of the chart, or COPPICE_LOCAL_MACHINES=allowed for the operator';

/**
 * All providers of this build; cloud providers start a Pulumi runner with the options on first use.
 * @param options localMachines: whether clusters may have machines that are privileged pods of the seed
 */
export function openProviders(options: RunnerOptions & { localMachines?: boolean }): Providers {
  let runner: PulumiRunner | undefined;
  const open = (): PulumiRunner => {
    runner ??= new PulumiRunner(options);
    return runner;
  };
  // Without clouds, no folders and no worker are created.
  const lazily: StackRunner = {
    preview: (request) => open().preview(request),
    apply: (request) => open().apply(request),
    drift: (request) => open().drift(request),
    destroy: (request) => open().destroy(request),
    outputs: (request) => open().outputs(request),
  };
  const all = new Map(PROVIDERS);
  if (!options.localMachines) all.set(local.name, { ...local, barred: NOT_ALLOWED });
  for (const open of [awsProvider, gcpProvider, azureProvider]) {
    const provider = open(lazily);
    all.set(provider.name, provider);
  }
  return {
    named: (name) => all.get(name),
    close: async (graceMs) => runner?.close(graceMs),
  };
}

/**
 * Provider of a profile, for a user with or without a cloud account; undefined when this build lacks it.
 * @param simulate without an account, clouds are simulated unless the profile names its provider
 */
export function providerFor(
  profile: CloudProfile,
  providers: Pick<Providers, 'named'>,
  { simulate, withAccount }: { simulate: boolean; withAccount: boolean },
): Provider | undefined {
  const known = providers.named(providerOf(profile));
  if (!simulate || profile.spec.provider !== undefined) return known;
  const isCloud = known === undefined || known.managed !== undefined;
  return isCloud && !(known && withAccount) ? providers.named('simulated') : known;
}

/** Names of providers without an account. */
export const providerNames = (): string[] => [...PROVIDERS.keys()];

/** The provider without an account of this name; throws a configuration problem when unknown. */
export function providerNamed(name: string): Provider {
  const provider = PROVIDERS.get(name);
  if (provider) return provider;
  const known = providerNames().join(', ');
  throw configurationProblem(
    `there is no provider ${name}`,
    `This build has ${known}: let the profile name one of these.`,
  );
}
