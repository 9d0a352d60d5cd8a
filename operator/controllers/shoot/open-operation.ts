import type { Provider } from '../../../providers/contract.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import { CoppiceError, configurationProblem, notYetConfigured } from '../../api/errors.ts';
import { CONTROL_PLANE_PRIORITY, technicalID } from '../../api/names.ts';
import type { Seed } from '../../api/seed.ts';
import { isToSleep, type Shoot, shootProfileName } from '../../api/shoot.ts';
import { isNotFound } from '../../kube/errors.ts';
import { decodeSecret } from '../../kube/resources.ts';
import { networkPolicies } from '../../shoot/network-policies.ts';
import { PKI_SECRET } from '../../shoot/pki.ts';
import { keptFor, usedByShoot } from '../kept-profile.ts';
import { resolveVersion, upgradeProblem } from '../kubernetes-version.ts';
import { controlPlaneValues, seedSurroundings } from './control-plane-values.ts';
import { isBeingDeleted } from './deletion/deletion-path.ts';
import type { ShootDependencies } from './dependencies.ts';
import { wantsMending } from './drift/drift.ts';
import { unreachableReason } from './expose.ts';
import { repairMachines } from './machines/repair.ts';
import type { Operation } from './operation.ts';
import { controlPlanePoolOf, poolsOfShoot } from './pools.ts';
import { providerContext } from './provider-context.ts';
import type { ShootState } from './state.ts';
import { restoreKeys } from './stored-keys.ts';
import { strategyOf } from './strategy.ts';
import { tellStatus } from './tell-status.ts';
import { allocateVNI } from './vni.ts';

/** A shoot with its memory and its seed. */
export interface PlacedShoot {
  readonly shoot: Shoot;
  readonly state: ShootState;
  readonly placed: Seed;
}

/**
 * Observes everything that an operation needs; creates nothing.
 * @param vnis allocated VNIs by technical ID that no namespace shows yet; is extended
 * @throws CoppiceError why the shoot cannot be made as requested
 */
export async function openOperation(
  deps: ShootDependencies,
  { shoot, state, placed }: PlacedShoot,
  vnis: Map<string, number>,
  signal: AbortSignal,
): Promise<Operation> {
  const deleting = isBeingDeleted(shoot, state);
  const { profile, provider } = offerFor(deps, shoot, deleting);
  const seed = await deps.registry.open(placed, signal);
  const { name, namespace = '' } = shoot.metadata;
  const id = technicalID(namespace, name);
  const withoutControlPlane = provider.withoutControlPlane?.includes(profile)
    ? provider.withoutControlPlane
    : undefined;
  const controlPlanePool = controlPlanePoolOf(shoot);
  const strategy = strategyOf({
    controlPlanePool,
    provider,
    withoutControlPlane,
    seed,
    shoot,
    values: { namespace: id },
  });
  const barred = provider.inCloud && !deleting && strategy.servesInSeed ? unreachableReason(placed) : undefined;
  if (barred) throw barred;
  const sleeps = !deleting && strategy.maySleep && isToSleep(shoot);
  // No upgrade while nothing runs.
  const version = versionOf(shoot, profile, { asIs: deleting || sleeps, keeps: strategy.keepsVersion }, deps.now());
  const vni = allocateVNI(id, seed.namespaces, vnis);
  vnis.set(id, vni);
  const values = strategy.reaching(
    {
      ...controlPlaneValues(shoot, profile, placed, version),
      ...(seed.hasControlPlanePriority && { priorityClassName: CONTROL_PLANE_PRIORITY }),
    },
    placed,
    provider,
    vni,
  );
  const op: Operation = {
    deps,
    shoot,
    state,
    seed,
    provider,
    strategy,
    withoutControlPlane,
    sleeps,
    pools: poolsOfShoot(shoot).map((pool) => (sleeps ? { ...pool, count: 0 } : pool)),
    controlPlanePool,
    mend: wantsMending(provider, shoot, state),
    unmended: new Map(),
    vni,
    networkPolicies: withoutControlPlane
      ? []
      : networkPolicies(
          values,
          seedSurroundings(placed, seed.addresses, provider, { vni, operatorNamespace: deps.state.namespace }),
        ),
    names: strategy.names(shoot, placed, provider.name),
    signal,
    values,
    pki: decodeSecret(seed.secrets.get(`${id}/${PKI_SECRET}`)?.data),
    context: () => providerContext(op, profile, placed),
    tell: (until) => {
      state.told?.();
      return tellStatus(op, until).then(() => {});
    },
    notice: () => {
      op.tell().catch((error) => {
        // A deleted cluster has no status.
        if (!isNotFound(error)) deps.log.warn({ err: error, shoot: name }, 'status not written');
      });
    },
  };
  state.listMachines = () => strategy.machines(op);
  state.repair = withoutControlPlane ? undefined : (until) => repairMachines(op, until);
  state.restoreKeys = deleting ? undefined : (until) => restoreKeys(op, until);
  if (!deleting) checkFits(op, profile);
  return op;
}

/** The profile for the shoot, and the provider of its machines. */
function offerFor(
  deps: ShootDependencies,
  shoot: Shoot,
  deleting: boolean,
): { readonly profile: CloudProfile; readonly provider: Provider } {
  const offered = deps.profiles.get(shootProfileName(shoot.spec));
  if (!offered) throw notYetConfigured(`CloudProfile "${shootProfileName(shoot.spec)}" does not exist`);
  const inUse = usedByShoot(shoot);
  const profile = inUse ? keptFor(offered, inUse, deps.now()) : offered;
  const provider = deps.provider(profile, deps.namesAccount(shoot));
  if (!provider)
    throw configurationProblem(`this operator has no provider "${profile.spec.provider ?? profile.spec.type}"`);
  if (provider.barred && !deleting && shoot.status?.seedName === undefined) throw configurationProblem(provider.barred);
  return { profile, provider };
}

/**
 * Kubernetes version for the shoot. Pure.
 * @param asIs keep the version, because nothing is made
 * @param keeps whether the running version stays
 */
function versionOf(
  shoot: Shoot,
  profile: CloudProfile,
  { asIs, keeps }: { readonly asIs: boolean; readonly keeps: boolean },
  now: Date,
): string {
  const running = shoot.status?.kubernetesVersion;
  const wanted = shoot.spec.kubernetes.version;
  if (asIs) return running ?? wanted ?? '';
  const stays = running && (wanted === undefined || (wanted === running && keeps));
  const version = stays ? running : resolveVersion(wanted, profile, now);
  if (version === undefined)
    throw configurationProblem(`CloudProfile "${profile.metadata.name}" offers no Kubernetes ${wanted}`);
  const why = running && upgradeProblem(running, version);
  if (why) throw configurationProblem(why);
  return version;
}

/** @throws CoppiceError what the strategy or the provider cannot do for the shoot */
function checkFits(op: Operation, profile: CloudProfile): void {
  const { provider, shoot, strategy, values } = op;
  const unfit = strategy.problem(op);
  if (unfit) throw configurationProblem(unfit);
  const problems = provider.validate(
    {
      region: shoot.spec.region,
      kubernetesVersion: values.version,
      networking: {
        pods: values.networks.pods,
        services: values.networks.services,
        ...(provider.inCloud && shoot.spec.networking?.nodes && { nodes: shoot.spec.networking.nodes }),
      },
      pools: [...(op.controlPlanePool ? [op.controlPlanePool] : []), ...op.pools],
    },
    profile,
  );
  if (problems.length > 0)
    throw new CoppiceError(problems[0]!.code, problems.map((p) => `${p.field}: ${p.message}`).join('; '));
}
