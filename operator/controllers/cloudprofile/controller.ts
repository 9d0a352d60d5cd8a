import { isDeepStrictEqual } from 'node:util';
import type { Provider } from '../../../providers/contract.ts';
import type { CloudProfile, CloudProfileStatus, MachineType } from '../../api/cloudprofile.ts';
import { type Shoot, shootProfileName } from '../../api/shoot.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { profileNamesOf } from '../../capacity/places.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Informer } from '../../kube/informer.ts';
import { CLOUDPROFILES, keyOf } from '../../kube/resources.ts';
import { type Said, say, withConditions } from '../conditions.ts';
import { hold } from '../finalizer.ts';
import { grantedMachineTypesOf } from '../kept-profile.ts';
import { lacksControlPlane } from '../lacks-control-plane.ts';
import { writeStatus } from '../status-writer.ts';

interface CloudProfileDependencies {
  readonly garden: KubeClient;
  readonly profiles: Informer<CloudProfile>;
  readonly clusters: Informer<WorkerCluster>;
  readonly shoots: Informer<Shoot>;
  now(): Date;
  provider(profile: CloudProfile, withAccount?: boolean): Provider | undefined;
}

/** Users of a profile, as `Kind namespace/name`; without Shoots of listed WorkerClusters. */
function usersOf(profile: string, clusters: readonly WorkerCluster[], shoots: readonly Shoot[]): string[] {
  const byCluster = clusters.filter((cluster) => profileNamesOf(cluster).includes(profile));
  const keys = new Set(byCluster.map(keyOf));
  return [
    ...byCluster.map((cluster) => `WorkerCluster ${keyOf(cluster)}`),
    ...shoots
      .filter((shoot) => shootProfileName(shoot.spec) === profile && !keys.has(keyOf(shoot)))
      .map((shoot) => `Shoot ${keyOf(shoot)}`),
  ].sort();
}

function usable({ spec }: CloudProfile, provider: Provider | undefined): Said<'CloudProfile'> {
  const codes = ['ERR_CONFIGURATION_PROBLEM'];
  if (!provider)
    return say('Ready', false, 'NoProvider', `this operator has no provider "${spec.provider ?? spec.type}"`, codes);
  if (provider.barred) return say('Ready', false, 'NotAllowed', provider.barred, codes);
  return say('Ready', true, 'Usable', `provider ${provider.name} makes the machines`);
}

/**
 * Machine types in use by a profile's clusters, with their last known offer. An unused type stays until another change,
 * or each cluster with a type of its own would cost two writes.
 */
function machineTypesInUse(
  { metadata: { name }, spec, status }: CloudProfile,
  clusters: readonly WorkerCluster[],
  shoots: readonly Shoot[],
): CloudProfileStatus['machineTypes'] {
  const users = [
    ...clusters.filter((cluster) => profileNamesOf(cluster).includes(name)),
    ...shoots.filter((shoot) => shootProfileName(shoot.spec) === name),
  ];
  const known = [...spec.machineTypes, ...(status?.machineTypes ?? [])];
  const used = [...new Set(users.flatMap(grantedMachineTypesOf))].sort();
  const wanted = used.flatMap((type) => known.find((one) => one.name === type) ?? []);
  const isTold = (one: MachineType) => status?.machineTypes?.some((told) => isDeepStrictEqual(told, one));
  return wanted.every(isTold) ? status?.machineTypes : wanted;
}

/** Holds a profile while clusters use it, and reports its validity in the status. */
export async function reconcileCloudProfile(
  deps: CloudProfileDependencies,
  name: string,
  signal: AbortSignal,
): Promise<void> {
  const profile = deps.profiles.get(name);
  if (!profile) return;
  const users = usersOf(name, deps.clusters.list(), deps.shoots.list());
  await hold(deps, CLOUDPROFILES, deps.profiles, profile, users.length > 0, { signal });
  if (users.length === 0 && profile.metadata.deletionTimestamp) return;
  const provider = deps.provider(profile);
  const shown = users.length > 5 ? `${users.slice(0, 5).join(', ')} and ${users.length - 5} more` : users.join(', ');
  const status: CloudProfileStatus = {
    conditions: withConditions<'CloudProfile'>(
      profile.status?.conditions,
      [
        usable(profile, provider),
        provider?.simulated
          ? say(
              'Simulated',
              true,
              'NoCloudCredentials',
              lacksControlPlane(profile, provider)
                ? 'SIMULATED: clusters of this profile get NO control planes and no nodes: they exist as objects only, without a control plane, for scale tests'
                : 'SIMULATED: clusters of this profile that name no credentials get real control planes and nodes that only look like nodes',
            )
          : undefined,
        provider?.noBoundary ? say('TenantsSeparated', false, 'NoBoundary', provider.noBoundary) : undefined,
        profile.metadata.deletionTimestamp
          ? say('Deleting', true, 'InUse', `deletion waits for what uses the profile: ${shown}`)
          : undefined,
      ],
      deps.now(),
    ),
    machineTypes: machineTypesInUse(profile, deps.clusters.list(), deps.shoots.list()),
    observedGeneration: profile.metadata.generation,
  };
  await writeStatus(deps.garden, deps.profiles, profile, status, signal);
}
