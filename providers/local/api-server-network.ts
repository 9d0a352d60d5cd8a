import { readFileSync } from 'node:fs';
import type { ClusterNetwork, ProviderContext } from '../contract.ts';
import { PAUSE_IMAGE } from './machine-files.ts';
import { HOST_FOLDERS, hostFolderMounts, hostFolderVolumes } from './machine-pod.ts';

const SCRIPT = readFileSync(new URL('./api-server-network.sh', import.meta.url), 'utf8');

/** Ends with the container at the latest. */
const WAIT = 'until [ -s "$EGRESS_FILE" ]; do sleep 0.02; done';

/**
 * Sidecar that joins an API server's pod to the VXLAN of the cluster's machines: sets interfaces, routes and firewall
 * rules, then waits, as PID 1 of the image that all pods of the seed run. undefined for another machine image, whose
 * seed may lack the programs or a common layer 2.
 */
export function apiServerNetwork(
  ctx: Pick<ProviderContext, 'machineImage' | 'podCIDR' | 'vni'>,
): ClusterNetwork | undefined {
  if (ctx.machineImage) return undefined;
  return {
    container: {
      name: 'cluster-network',
      image: PAUSE_IMAGE,
      imagePullPolicy: 'IfNotPresent',
      command: ['/bin/bash', '-c', SCRIPT],
      // kubelet starts the API server after this hook, a second sooner than after an init container.
      lifecycle: { postStart: { exec: { command: ['/bin/bash', '-c', WAIT] } } },
      env: [
        { name: 'VNI', value: String(ctx.vni) },
        { name: 'POD_CIDR', value: ctx.podCIDR },
      ],
      resources: { requests: { cpu: '1m', memory: '1Mi' } },
      // Root in its pod's network namespace only.
      securityContext: {
        runAsNonRoot: false,
        runAsUser: 0,
        runAsGroup: 0,
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'], add: ['NET_ADMIN', 'NET_RAW'] },
      },
      volumeMounts: [...hostFolderMounts(HOST_FOLDERS), { name: 'run', mountPath: '/run' }],
    },
    // For iptables' lock.
    volumes: [...hostFolderVolumes(HOST_FOLDERS), { name: 'run', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } }],
  };
}
