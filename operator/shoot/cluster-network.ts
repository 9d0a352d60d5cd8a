import { egress, egressSelector, withoutProxy } from './konnectivity-server.ts';
import { type ControlPlane, seedAddresses } from './values.ts';

/** The API server's configuration for reaching machines and pods, where no tunnel is used. */
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

/** Socket without a listener: requests for pods or kubelets fail with an error that contains this name. */
const NOBODY = '/no-pods-run-in-a-simulated-cluster';
const NOTHING: NetworkParts = { arguments: [], files: {}, pod: {} };

const VOLUME = 'network';
const FOLDER = '/network';
/** By the pod's address: a pod whose network was recreated must not start with the previous file. */
const EGRESS_FILE = `${FOLDER}/$(POD_IP)/${egress.file}`;
const POD_IP = { name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } };

/** @param directory the API server's directory of files */
export function networkParts(values: ControlPlane, directory: string): NetworkParts {
  const { clusterNetwork } = values;
  if (!clusterNetwork) return NOTHING;
  // // Refused by configuration, which needs no process: an address forged by a tenant would otherwise be one of the
  // seed.
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
      // // Service addresses work on machines only: webhooks and aggregated APIs are dialled at their pods.
      '--enable-aggregator-routing=true',
      // // The API server exits when the file is missing: otherwise it would dial through the seed's network before its
      // own is ready.
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
