import type { CloudContext } from '../cloud.ts';
import type { MachinePhase } from '../contract.ts';
import { posted } from '../json-api.ts';
import type { CloudMachine, MachineCloud } from '../machines/machine-cloud.ts';
import type { LayeredCloud } from '../pulumi/layers.ts';
import { missingForControlPlane } from './account.ts';
import { allPages, callAzure, type Endpoints } from './arm.ts';
import { credentialsOf } from './credentials.ts';
import { resourceGroupName, scaleSetName } from './names.ts';
import { entraToken, managementScope } from './token.ts';

/** Canonical's images at Azure: publisher:offer:sku:version ("Find Ubuntu images on Microsoft Azure", documentation.ubuntu.com/azure). */
const IMAGES = {
  amd64: 'Canonical:ubuntu-24_04-lts:server:latest',
  arm64: 'Canonical:ubuntu-24_04-lts:server-arm64:latest',
} as const;

/** API versions: those of @pulumi/azure-native 3.28. */
const COMPUTE = '2024-11-01';
const NETWORK = '2024-05-01';

/** The fields of Microsoft.Compute's VirtualMachine that are read. */
interface VirtualMachine {
  id: string;
  name: string;
  zones?: string[];
  properties: {
    provisioningState?: string;
    vmId?: string;
    /** Base64; returned only on explicit request. */
    userData?: string;
    timeCreated?: string;
    osProfile?: { computerName?: string };
    virtualMachineScaleSet?: { id: string };
  };
}

/** The fields of Microsoft.Network's NetworkInterface that are read. */
interface NetworkInterface {
  properties: {
    virtualMachine?: { id: string };
    ipConfigurations?: { properties: { privateIPAddress?: string } }[];
  };
}

/** ProvisioningState of Azure Resource Manager. */
const PHASES: Readonly<Record<string, MachinePhase>> = {
  Creating: 'Pending',
  Updating: 'Running',
  Succeeded: 'Running',
  Deleting: 'Terminating',
};

/**
 * VM scale sets of orchestration mode Flexible: their machines are virtual machines in the owner's resource group.
 * `endpoints`: Azure's endpoints for the profile.
 */
export function azureMachines(layers: LayeredCloud, endpoints: (ctx: CloudContext) => Endpoints): MachineCloud {
  const providers = (ctx: CloudContext) =>
    `${endpoints(ctx).management}/subscriptions/${credentialsOf(ctx.account).subscriptionID}/resourceGroups/${resourceGroupName(ctx.owner)}/providers`;
  const tokenFor = (ctx: CloudContext) => entraToken(ctx, endpoints(ctx), managementScope(endpoints(ctx)));

  const all = <T>(ctx: CloudContext, first: string, token: string, what: string): Promise<T[]> =>
    allPages<T>(first, what, endpoints(ctx), (url) =>
      callAzure({ url, token, what, signal: ctx.signal }, { absent: true }),
    );

  /** By the owner's UID: constant hashes of machines, which are readable only machine by machine. */
  const hashes = new Map<string, Map<string, string>>();

  /** Hashes of machines by id. Each is read once. */
  async function hashesOf(
    ctx: CloudContext,
    token: string,
    machines: readonly VirtualMachine[],
    isOurs: (machine: VirtualMachine) => boolean,
  ): Promise<ReadonlyMap<string, string>> {
    const keyOf = ({ id, properties: { vmId } }: VirtualMachine) => vmId ?? id;
    const found = hashes.get(ctx.owner.uid) ?? new Map<string, string>();
    // Stored first: after a refusal midway, known hashes are not read again.
    if (machines.length > 0) hashes.set(ctx.owner.uid, found);
    else hashes.delete(ctx.owner.uid);
    const there = new Set(machines.map(keyOf));
    for (const key of found.keys()) if (!there.has(key)) found.delete(key);
    for (const machine of machines.filter((one) => isOurs(one) && !found.has(keyOf(one)))) {
      const url = `${endpoints(ctx).management}${machine.id}?api-version=${COMPUTE}&$expand=userData`;
      const what = `machine ${machine.name} cannot be read`;
      const one = await callAzure<VirtualMachine>({ url, token, what, signal: ctx.signal }, { absent: true });
      if (one) found.set(keyOf(machine), Buffer.from(one.properties.userData ?? '', 'base64').toString());
    }
    return new Map(machines.map((machine) => [machine.id, found.get(keyOf(machine)) ?? '']));
  }

  return {
    layers,
    group: { type: 'azure-native:compute:VirtualMachineScaleSet', size: 'sku' },
    problems: () => [],
    image: async (_ctx, architecture) => ({ image: IMAGES[architecture] }),
    controlPlane: {
      missing: (ctx) => missingForControlPlane(ctx, endpoints(ctx)),
      // A flexible scale set's capacity is its number of machines, so it is already lower.
      forget: async () => {},
      // All resources of these layers have members or an address.
      remade: [],
    },

    async machines(ctx, pools) {
      const { token } = await tokenFor(ctx);
      const what = `machines of ${ctx.owner.technicalID} cannot be listed`;
      const [machines, interfaces] = await Promise.all([
        all<VirtualMachine>(
          ctx,
          `${providers(ctx)}/Microsoft.Compute/virtualMachines?api-version=${COMPUTE}`,
          token,
          what,
        ),
        all<NetworkInterface>(
          ctx,
          `${providers(ctx)}/Microsoft.Network/networkInterfaces?api-version=${NETWORK}`,
          token,
          what,
        ),
      ]);
      const addresses = new Map(
        interfaces.map(({ properties: { virtualMachine, ipConfigurations } }) => [
          virtualMachine?.id.toLowerCase(),
          ipConfigurations?.[0]?.properties.privateIPAddress,
        ]),
      );
      const poolOf = new Map(pools.map((pool) => [scaleSetName(ctx.owner, pool).toLowerCase(), pool]));
      const told = await hashesOf(ctx, token, machines, (machine) => poolIn(poolOf, machine) !== undefined);
      return machines.flatMap((machine) =>
        machineOf(machine, poolIn(poolOf, machine), addresses.get(machine.id.toLowerCase()), told.get(machine.id)),
      );
    },

    // A machine's name is its id in a flexible scale set: Azure/azure-sdk-for-go issue 19588. The capacity follows.
    async remove(ctx, pool, machines) {
      const { token } = await tokenFor(ctx);
      const set = `${providers(ctx)}/Microsoft.Compute/virtualMachineScaleSets/${scaleSetName(ctx.owner, pool)}`;
      await callAzure({
        url: `${set}/delete?api-version=${COMPUTE}`,
        token,
        ...posted({ instanceIds: machines.map(({ name }) => name) }),
        what: `machines of pool ${pool} cannot be ended`,
        signal: ctx.signal,
      });
    },
  };
}

/** @param poolOf pools by scale set name */
const poolIn = (poolOf: ReadonlyMap<string, string>, { properties }: VirtualMachine): string | undefined =>
  poolOf.get(properties.virtualMachineScaleSet?.id.split('/').at(-1)?.toLowerCase() ?? '');

function machineOf(
  { name, zones, properties }: VirtualMachine,
  pool: string | undefined,
  address: string | undefined,
  hash: string | undefined,
): CloudMachine[] {
  if (pool === undefined) return [];
  const zone = zones?.[0];
  return [
    {
      name,
      pool,
      // install.sh names the node like the host, in lower case.
      nodeName: (properties.osProfile?.computerName ?? name).toLowerCase(),
      phase: PHASES[properties.provisioningState ?? 'Creating'] ?? 'Failed',
      createdAt: properties.timeCreated ?? '',
      ...(zone !== undefined && { zone }),
      ...(hash && { hash }),
      ...(address !== undefined && { address }),
    },
  ];
}
