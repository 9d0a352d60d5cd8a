import { egress, egressSelector } from './konnectivity-server.ts';
import { type ControlPlane, seedAddresses } from './values.ts';

/** What the API server has of its way to machines and pods, where that is no tunnel. */
interface NetworkParts {
  arguments: string[];
  files: Record<string, string>;
  /** They end before the API server begins. */
  initContainers: object[];
  volumes: object[];
}

/** Nobody serves this socket: whoever asks for a pod or a kubelet reads its name in the answer. */
const NOBODY = '/no-pods-run-in-a-simulated-cluster';
const NOTHING: NetworkParts = { arguments: [], files: {}, initContainers: [], volumes: [] };

/** @param directory where the API server has its files */
export function networkParts(values: ControlPlane, directory: string): NetworkParts {
  const { clusterNetwork } = values;
  if (!clusterNetwork) return NOTHING;
  // Refused by configuration, which costs no process: an address that a tenant forges would otherwise be one of the seed.
  if (clusterNetwork === 'none')
    return {
      ...NOTHING,
      arguments: [egress.argument(directory)],
      files: { [egress.file]: egressSelector('HTTPConnect', NOBODY) },
    };
  const { container, volumes } = clusterNetwork;
  return {
    ...NOTHING,
    // The address of a Service leads somewhere on machines alone: webhooks and aggregated APIs are dialled at their pods.
    arguments: ['--enable-aggregator-routing=true'],
    initContainers: [
      { ...container, env: [...container.env, { name: 'SEED_ADDRESSES', value: seedAddresses(values).join(' ') }] },
    ],
    volumes,
  };
}
