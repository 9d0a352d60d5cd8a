import type { ApiServerEndpoint, HubType } from '../../hubs/contract.ts';
import { isLoopback } from '../../kube/http/address-guard.ts';

/** One end of a connection between hub and cluster. */
interface End {
  /** Name, for example `Hub production`. */
  readonly who: string;
  readonly at: ApiServerEndpoint;
}

/**
 * Why a hub and a cluster cannot be connected, a sentence with both ends and what to set; undefined: no known obstacle.
 * Pure: firewalls are unknown. Loopback addresses are reachable on the same machine, and through a proxy.
 */
export function whyUnreachable(dials: ReturnType<HubType['dials']>, hub: End, member: End): string | undefined {
  if (dials === 'HubToMember' || dials === 'Both') {
    const why = whyNotDialled(hub, member);
    if (why) return `${why}: set member.endpoint of the Hub, or member.proxyURL`;
  }
  if (dials === 'MemberToHub' || dials === 'Both') {
    const why = whyNotDialled(member, hub);
    if (why) return `${why}: give the Hub a kubeconfig with an address that its members reach`;
  }
  return undefined;
}

function whyNotDialled(from: End, to: End): string | undefined {
  const line = `${from.who} at ${from.at.server || 'no address'} cannot reach ${to.who} at ${to.at.server || 'no address'}`;
  const host = hostOf(to.at);
  if (host === undefined) return `${line}, which is no URL`;
  if (NOWHERE.has(host)) return `${line}, which is no address to connect to`;
  if (to.at.proxyURL || !isLoopback(host)) return undefined;
  const own = hostOf(from.at);
  return own !== undefined && isLoopback(own) ? undefined : `${line}, which only its own machine can reach`;
}

const NOWHERE = new Set(['0.0.0.0', '::']);

function hostOf({ server }: ApiServerEndpoint): string | undefined {
  if (!URL.canParse(server)) return undefined;
  return new URL(server).hostname.replace(/^\[|\]$/g, '') || undefined;
}
