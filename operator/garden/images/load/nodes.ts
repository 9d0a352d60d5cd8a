import { LABELS, ROLES } from '../../../api/group.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { execInPod } from '../../../kube/pod-exec.ts';
import { PODS, type Pod } from '../../../kube/resources.ts';

const PULL_MS = 10 * 60_000;
const AT_ONCE = 4;

/** Result of an image update on a node. */
interface NodeResult {
  node: string;
  taken: boolean;
  error?: string;
}

/** Machines to update: one cluster's, or all that already have an image of the name. */
type Machines = { name: string; namespace: string } | 'those that have it';

/** Script on a machine: with `always`, or where it has an image of the name, the image is pulled from the mirror. */
const TAKE = `
PATH=/opt/coppice/bin:/opt/coppice/runtime:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ref=$1 always=$2
if [ "$always" != yes ] && [ -z "$(ctr -n k8s.io images list -q "name==$ref")" ]; then echo absent; exit 0; fi
ctr -n k8s.io images pull --hosts-dir /etc/coppice/certs.d "$ref" >/dev/null && echo taken
`;

/** Machines in a garden's seed. */
export async function machinePods(client: KubeClient, machines: Machines): Promise<Pod[]> {
  const labels: Record<string, string> = { [LABELS.role]: ROLES.machine };
  if (machines !== 'those that have it') {
    labels[LABELS.shoot] = machines.name;
    labels[LABELS.shootNamespace] = machines.namespace;
  }
  const labelSelector = Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(',');
  const { items } = await client.list<Pod>(PODS, { labelSelector });
  return items.filter(({ metadata, status }) => status?.phase === 'Running' && !metadata.deletionTimestamp);
}

/**
 * Makes nodes pull an image from the mirror at once, replacing one of the same name: pods with IfNotPresent would get
 * the old one.
 * @param kubeconfig of the garden whose seed has the machines
 */
export async function takeOnNodes(
  kubeconfig: string,
  pods: readonly Pod[],
  ref: string,
  always: boolean,
): Promise<NodeResult[]> {
  const results: NodeResult[] = [];
  const waiting = [...pods];
  const work = async () => {
    for (let pod = waiting.shift(); pod; pod = waiting.shift()) {
      const { name: node, namespace = '' } = pod.metadata;
      const target = { namespace, pod: node, container: 'machine' };
      const command = ['bash', '-c', TAKE, 'take', ref, always ? 'yes' : 'no'];
      try {
        results.push({ node, taken: (await execInPod(kubeconfig, target, command, PULL_MS)).includes('taken') });
      } catch (error) {
        results.push({ node, taken: false, error: (error as Error).message });
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return results;
}
