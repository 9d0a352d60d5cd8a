import type { CloudContext } from '../cloud.ts';
import type { MachinePhase } from '../contract.ts';
import type { CloudMachine, MachineCloud } from '../machines/machine-cloud.ts';
import type { LayeredCloud } from '../pulumi/layers.ts';
import { call, type Endpoints } from './arm.ts';
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

/** VirtualMachine of Microsoft.Compute, as far as it is used. */
interface VirtualMachine {
  id: string;
  name: string;
  zones?: string[];
  properties: {
    provisioningState?: string;
    timeCreated?: string;
    osProfile?: { computerName?: string };
    virtualMachineScaleSet?: { id: string };
  };
}

/** NetworkInterface of Microsoft.Network, as far as it is used. */
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

/** VM scale sets of orchestration Flexible: their machines are virtual machines of the owner's resource group. */
export function azureMachines(layers: LayeredCloud, endpoints: Endpoints): MachineCloud {
  const providers = ({ account, owner }: CloudContext) =>
    `${endpoints.management}/subscriptions/${credentialsOf(account).subscriptionID}/resourceGroups/${resourceGroupName(owner)}/providers`;

  async function all<T>(ctx: CloudContext, url: string, token: string, what: string): Promise<T[]> {
    const found: T[] = [];
    for (let next: string | undefined = url; next !== undefined; ) {
      const page: { value?: T[]; nextLink?: string } | undefined = await call(
        { url: next, token, what, signal: ctx.signal },
        { absent: true },
      );
      found.push(...(page?.value ?? []));
      next = page?.nextLink || undefined;
    }
    return found;
  }

  return {
    layers,
    problems: () => [],
    image: async (_ctx, architecture) => ({ image: IMAGES[architecture] }),

    async machines(ctx, pools) {
      const { token } = await entraToken(ctx, endpoints, managementScope(endpoints));
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
      return machines.flatMap((machine) => machineOf(machine, poolOf, addresses.get(machine.id.toLowerCase())));
    },

    // The names of machines are their ids in a flexible scale set: Azure/azure-sdk-for-go issue 19588. Its capacity follows.
    async remove(ctx, pool, machines) {
      const { token } = await entraToken(ctx, endpoints, managementScope(endpoints));
      const set = `${providers(ctx)}/Microsoft.Compute/virtualMachineScaleSets/${scaleSetName(ctx.owner, pool)}`;
      await call({
        method: 'POST',
        url: `${set}/delete?api-version=${COMPUTE}`,
        token,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ instanceIds: machines.map(({ name }) => name) }),
        what: `machines of pool ${pool} cannot be ended`,
        signal: ctx.signal,
      });
    },
  };
}

function machineOf(
  { name, zones, properties }: VirtualMachine,
  poolOf: ReadonlyMap<string, string>,
  address: string | undefined,
): CloudMachine[] {
  const set = properties.virtualMachineScaleSet?.id.split('/').at(-1)?.toLowerCase();
  const pool = poolOf.get(set ?? '');
  if (pool === undefined) return [];
  const zone = zones?.[0];
  return [
    {
      name,
      pool,
      // install.sh calls the node as the host is called, in small letters.
      nodeName: (properties.osProfile?.computerName ?? name).toLowerCase(),
      phase: PHASES[properties.provisioningState ?? 'Creating'] ?? 'Failed',
      createdAt: properties.timeCreated ?? '',
      ...(zone !== undefined && { zone }),
      ...(address !== undefined && { address }),
    },
  ];
}
