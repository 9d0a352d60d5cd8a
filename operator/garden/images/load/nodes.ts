import { LABELS, ROLES } from '../../../api/group.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { execInPod } from '../../../kube/pod-exec.ts';
import { PODS, type Pod } from '../../../kube/resources.ts';

const PULL_MS = 10 * 60_000;
const AT_ONCE = 4;

/** A node that has, or has not, taken an image. */
interface NodeResult {
  node: string;
  taken: boolean;
  error?: string;
}

/** Whose machines are meant: one cluster's, or all that have an image of the name already. */
type Machines = { name: string; namespace: string } | 'those that have it';

/** Of the machine's image: with `always`, or where there is one of the name, it is taken from the mirror. */
const TAKE = `
PATH=/opt/coppice/bin:/opt/coppice/runtime:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ref=$1 always=$2
if [ "$always" != yes ] && [ -z "$(ctr -n k8s.io images list -q "name==$ref")" ]; then echo absent; exit 0; fi
ctr -n k8s.io images pull --hosts-dir /etc/coppice/certs.d "$ref" >/dev/null && echo taken
`;

/** Machines that run in the seed of a garden. */
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
 * Has nodes take an image of the mirror at once, in place of one of the same name: a pod with IfNotPresent would get the old one.
 * @param kubeconfig of the garden, whose seed the machines are in
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
