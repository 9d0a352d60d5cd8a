import { CoppiceError, dependencyNotReady } from '../../operator/api/errors.ts';
import { sleep } from '../../operator/kube/clock.ts';
import type { CloudContext, CloudNode, ManagedClusterOutputs, PoolLeft } from '../cloud.ts';
import { posted } from '../json-api.ts';
import { removalRefusalOf } from '../refused-removal.ts';
import { OWNER_TAGS, POOL_TAG } from '../tags.ts';
import { allPages, callAzure, type Endpoints } from './arm.ts';
import { AKS_API } from './kubeconfig.ts';
import { entraToken, managementScope } from './token.ts';

/** The fields of Microsoft.ContainerService's AgentPool that are read. */
interface AgentPool {
  id: string;
  name: string;
  properties: { count?: number; mode?: string; provisioningState?: string; tags?: Record<string, string> };
}

/** Machine of Microsoft.ContainerService. */
interface Machine {
  name: string;
  /** `resourceId`: of the virtual machine, as in nodes' providerID. */
  properties: { resourceId?: string };
}

type Ask = <T>(path: string, what: string, body?: object) => Promise<T | undefined>;

/** Deleting a machine takes a minute or two, with AKS' drain before. */
const PATIENCE_MS = 20 * 60_000;
const LONGEST_WAIT_MS = 10_000;

/**
 * Deletes nodes of AKS agent pools; see ManagedClusters.removeNodes. Agent Pools - Delete Machines, "Deletes specific
 * machines in an agent pool" (Azure REST API reference, Microsoft.ContainerService): a long operation on the pool,
 * which lowers its count.
 */
export async function removeNodes(
  ctx: CloudContext,
  endpoints: Endpoints,
  { name, extra }: ManagedClusterOutputs,
  pool: string,
  nodes: readonly CloudNode[],
): Promise<PoolLeft> {
  const { token } = await entraToken(ctx, endpoints, managementScope(endpoints));
  const ask: Ask = (path, what, body) => {
    const url = path.startsWith('https://') || path.startsWith('http://') ? path : `${endpoints.management}${path}`;
    return callAzure({ url, token, what, signal: ctx.signal, ...(body && posted(body)) });
  };
  const all = <T>(path: string, failed: string): Promise<T[]> =>
    allPages<T>(`${endpoints.management}${path}?api-version=${AKS_API}`, failed, endpoints, (url) => ask(url, failed));
  const what = `nodes of pool ${pool} cannot be ended`;
  const listed = async (): Promise<AgentPool[]> =>
    (await all<AgentPool>(`${extra?.id}/agentPools`, `agent pools of ${name} cannot be listed`)).filter(
      ({ properties: { tags = {} } }) => tags[OWNER_TAGS.uid] === ctx.owner.uid && tags[POOL_TAG] === pool,
    );
  const named = async (one: AgentPool): Promise<string[]> =>
    (await all<Machine>(`${one.id}/machines`, what))
      .filter(({ properties: { resourceId } }) => nodes.some(({ providerID }) => isSame(providerID, resourceId)))
      .map((machine) => machine.name);
  /** The pool once no operation runs on it: an operation begun before a crash is complete and counted. */
  const settled = async (id: string): Promise<AgentPool> => {
    for (let waited = 0, wait = 100; ; waited += wait, wait = Math.min(2 * wait, LONGEST_WAIT_MS)) {
      const one = (await ask<AgentPool>(`${id}?api-version=${AKS_API}`, what))!;
      if (['Succeeded', 'Failed', 'Canceled'].includes(one.properties.provisioningState ?? '')) return one;
      if (waited > PATIENCE_MS)
        throw dependencyNotReady(`agent pool ${one.name} of ${name} is ${one.properties.provisioningState} for long`);
      await sleep(wait, ctx.signal);
    }
  };

  let size = 0;
  let refused: PoolLeft['refused'];
  for (const { id } of await listed()) {
    let one = await settled(id);
    const machineNames = await named(one);
    if (machineNames.length > 0 && !refused) {
      refused =
        lastOfSystem(one, machineNames.length) ??
        (await removalRefusalOf(ask(`${id}/deleteMachines?api-version=${AKS_API}`, what, { machineNames })));
      one = await settled(id);
      if (!refused && (await named(one)).length > 0)
        throw dependencyNotReady(`${what}: AKS has not ended ${machineNames.join(', ')}`);
    }
    size += one.properties.count ?? 0;
  }
  return { size, ...(refused && { refused }) };
}

/**
 * AKS' own workloads need a node (azure-aks-docs, use-system-pools.md: "System pools must contain at least one node").
 */
const lastOfSystem = ({ name, properties: { mode, count = 0 } }: AgentPool, going: number): CoppiceError | undefined =>
  mode === 'System' && count - going < 1
    ? new CoppiceError('ERR_INFRA_DEPENDENCIES', `agent pool ${name} is of mode System, and keeps one node`)
    : undefined;

/** Azure ids are case-insensitive. */
const isSame = (providerID: string, resourceID = ''): boolean =>
  resourceID !== '' && providerID.replace(/^azure:\/\//, '').toLowerCase() === resourceID.toLowerCase();
