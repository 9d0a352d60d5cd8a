import { egress, egressSelector, withoutProxy } from './konnectivity-server.ts';
import { type ControlPlane, seedAddresses } from './values.ts';

/** What the API server has of its way to machines and pods, where that is no tunnel. */
interface NetworkParts {
  arguments: string[];
  files: Record<string, string>;
  /** For the API server's pod. */
  pod: {
    first?: object[];
    env?: { name: string; valueFrom: unknown }[];
    mounts?: { name: string; mountPath: string; readOnly: boolean }[];
    volumes?: object[];
  };
}

/** Nobody serves this socket: whoever asks for a pod or a kubelet reads its name in the answer. */
const NOBODY = '/no-pods-run-in-a-simulated-cluster';
const NOTHING: NetworkParts = { arguments: [], files: {}, pod: {} };

const VOLUME = 'network';
const FOLDER = '/network';
/** By the pod's address: one whose network was made anew must not start with what the earlier one has left. */
const EGRESS_FILE = `${FOLDER}/$(POD_IP)/${egress.file}`;
const POD_IP = { name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } };

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
  const more = [
    { name: 'SEED_ADDRESSES', value: seedAddresses(values).join(' ') },
    POD_IP,
    { name: 'EGRESS_FILE', value: EGRESS_FILE },
    { name: 'EGRESS', value: withoutProxy },
  ];
  const mount = { name: VOLUME, mountPath: FOLDER };
  return {
    files: {},
    arguments: [
      // The address of a Service leads somewhere on machines alone: webhooks and aggregated APIs are dialled at their pods.
      '--enable-aggregator-routing=true',
      // An API server ends when a file is missing: without its network, which is there before this one, it would dial by the seed's.
      `--egress-selector-config-file=${EGRESS_FILE}`,
    ],
    pod: {
      first: [{ ...container, env: [...container.env, ...more], volumeMounts: [...container.volumeMounts, mount] }],
      env: [POD_IP],
      mounts: [{ ...mount, readOnly: true }],
      volumes: [...volumes, { name: VOLUME, emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } }],
    },
  };
}
