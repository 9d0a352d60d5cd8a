import type { CloudContext } from '../cloud.ts';
import type { MachinePhase } from '../contract.ts';
import { posted } from '../json-api.ts';
import type { CloudMachine, MachineCloud } from '../machines/machine-cloud.ts';
import { eachPage } from '../pages.ts';
import type { LayeredCloud } from '../pulumi/layers.ts';
import { OWNER_TAGS, POOL_HASH_TAG, POOL_TAG } from '../tags.ts';
import { missingForControlPlane } from './account.ts';
import { credentialsOf } from './credentials.ts';
import { callGoogle, type Endpoints } from './google-api.ts';
import { computeName } from './names.ts';
import { accessToken } from './token.ts';

/**
 * Canonical's image families ("Find Ubuntu images on Google Cloud", documentation.ubuntu.com/gcp). A group uses the
 * family's newest image for each new machine.
 */
const imageOf = (architecture: string): string =>
  `projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-${architecture}`;

/** The fields of google.cloud.compute.v1's Instance that are read. */
interface Instance {
  name: string;
  zone: string;
  status: string;
  creationTimestamp: string;
  labels?: Record<string, string>;
  networkInterfaces?: { networkIP?: string }[];
}

/** Instance.status; a stopped or suspended machine does not restart by itself. */
const PHASES: Readonly<Record<string, MachinePhase>> = {
  PROVISIONING: 'Pending',
  STAGING: 'Pending',
  RUNNING: 'Running',
  REPAIRING: 'Running',
  STOPPING: 'Terminating',
};

/**
 * Regional managed instance groups. Methods and fields: discovery document of compute v1
 * (googleapis/google-api-go-client). `endpoints`: Google's endpoints for the profile.
 */
export function gcpMachines(layers: LayeredCloud, endpoints: (ctx: CloudContext) => Endpoints): MachineCloud {
  const project = (ctx: CloudContext) =>
    `${endpoints(ctx).compute}/compute/v1/projects/${credentialsOf(ctx.account, ctx.profile).project}`;
  const group = (ctx: CloudContext, pool: string) =>
    `${project(ctx)}/regions/${ctx.region}/instanceGroupManagers/${computeName(ctx.owner, pool)}`;
  const ask = async <T>(ctx: CloudContext, url: string, what: string, body?: object): Promise<T | undefined> => {
    const { token } = await accessToken(ctx, endpoints(ctx));
    return callGoogle<T>({ url, token, what, signal: ctx.signal, ...(body && posted(body)) });
  };

  return {
    layers,
    group: { type: 'gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager', size: 'targetSize' },
    problems: () => [],
    image: async (_ctx, architecture) => ({ image: imageOf(architecture) }),

    async machines(ctx, pools) {
      const found: CloudMachine[] = [];
      const what = `machines of ${ctx.owner.technicalID} cannot be listed`;
      await eachPage(what, async (page) => {
        const parameters = new URLSearchParams({
          filter: `labels.${OWNER_TAGS.uid}=${ctx.owner.uid}`,
          ...(page && { pageToken: page }),
        });
        const url = `${project(ctx)}/aggregated/instances?${parameters}`;
        const answer = await ask<{ items?: Record<string, { instances?: Instance[] }>; nextPageToken?: string }>(
          ctx,
          url,
          what,
        );
        const instances = Object.values(answer?.items ?? {}).flatMap((place) => place.instances ?? []);
        found.push(...instances.flatMap((instance) => machineOf(instance, ctx.region, pools)));
        return answer?.nextPageToken;
      });
      return found;
    },

    // "This method reduces the targetSize of the managed instance group by the number of instances that you delete."
    async remove(ctx, pool, machines) {
      const instances = machines.map(({ zone, name }) => `zones/${zone}/instances/${name}`);
      await ask(ctx, `${group(ctx, pool)}/deleteInstances`, `machines of pool ${pool} cannot be ended`, { instances });
    },

    controlPlane: {
      missing: (ctx) => missingForControlPlane(ctx, endpoints(ctx)),

      // The group replaces no failed machine, and continues to count it.
      async forget(ctx, pool, names, listed) {
        const what = `machines of pool ${pool} cannot be listed`;
        const answer = await ask<{ managedInstances?: { instance: string; currentAction?: string }[] }>(
          ctx,
          `${group(ctx, pool)}/listManagedInstances`,
          what,
          {},
        );
        const instances = (answer?.managedInstances ?? []).flatMap(({ instance, currentAction }) => {
          const [zone, , name = ''] = instance.split('/').slice(-3);
          // With any other action the group is creating or deleting it.
          const isLost = currentAction === 'NONE' && !listed.includes(name);
          return names.includes(name) || isLost ? [`zones/${zone}/instances/${name}`] : [];
        });
        if (instances.length === 0) return;
        await ask(ctx, `${group(ctx, pool)}/deleteInstances`, `machines of pool ${pool} cannot be forgotten`, {
          instances,
          skipInstancesOnValidationError: true,
        });
      },

      remade: [
        'gcp:compute/backendService:BackendService',
        'gcp:compute/firewall:Firewall',
        'gcp:compute/globalForwardingRule:GlobalForwardingRule',
        'gcp:compute/healthCheck:HealthCheck',
        'gcp:compute/instanceTemplate:InstanceTemplate',
        'gcp:compute/router:Router',
        'gcp:compute/routerNat:RouterNat',
        'gcp:compute/targetTCPProxy:TargetTCPProxy',
      ],
    },

    async failure(ctx, pool) {
      const answer = await ask<{ items?: ListedError[] }>(
        ctx,
        `${group(ctx, pool)}/listErrors`,
        `errors of pool ${pool} cannot be listed`,
      );
      // Google's order is undefined.
      const [newest] = (answer?.items ?? []).sort((a, b) => timeOf(b) - timeOf(a));
      // Errors stay listed for an hour after they are resolved.
      const age = ctx.now().getTime() - timeOf(newest);
      return newest?.error && age < RECENT_MS
        ? `${newest.error.code}: ${newest.error.message?.split('\n')[0]?.slice(0, 300)}`
        : undefined;
    },
  };
}

const RECENT_MS = 10 * 60_000;

/** InstanceManagedByIgmError of compute v1. */
interface ListedError {
  error?: { code?: string; message?: string };
  timestamp?: string;
}

const timeOf = (one: ListedError | undefined): number => Date.parse(one?.timestamp ?? '');

function machineOf(instance: Instance, region: string, pools: readonly string[]): CloudMachine[] {
  const { [POOL_TAG]: pool, [POOL_HASH_TAG]: hash } = instance.labels ?? {};
  const zone = instance.zone.split('/').at(-1)!;
  if (pool === undefined || !pools.includes(pool) || !zone.startsWith(`${region}-`)) return [];
  const address = instance.networkInterfaces?.[0]?.networkIP;
  return [
    {
      name: instance.name,
      pool,
      nodeName: instance.name,
      phase: PHASES[instance.status] ?? 'Failed',
      createdAt: instance.creationTimestamp,
      zone,
      ...(hash !== undefined && { hash }),
      ...(address !== undefined && { address }),
    },
  ];
}
