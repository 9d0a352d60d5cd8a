import { configurationProblem } from '../operator/api/errors.ts';
import type { Provider } from './contract.ts';
import { local } from './local/index.ts';
import { simulated } from './simulated/index.ts';

export type {
  Machine,
  MachinePhase,
  Pool,
  Problem,
  Provider,
  ProviderContext,
  Wanted,
} from './contract.ts';

const PROVIDERS: ReadonlyMap<string, Provider> = new Map(
  [local, simulated].map((provider) => [provider.name, provider]),
);

/** Names of all providers of this build. */
export const providerNames = (): string[] => [...PROVIDERS.keys()];

/** The provider of this name; throws a configuration problem when there is none. */
export function providerNamed(name: string): Provider {
  const provider = PROVIDERS.get(name);
  if (provider) return provider;
  const known = providerNames().join(', ');
  throw configurationProblem(
    `there is no provider ${name}`,
    `This build has ${known}: let the profile name one of these.`,
  );
}
