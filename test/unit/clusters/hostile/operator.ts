import { ClusterConnection } from '../../../../operator/clusters/cluster-connection.ts';
import { KubeClient } from '../../../../operator/kube/client.ts';
import { silent } from '../../../../operator/kube/log.ts';

/** Opens a cluster as the operator does, in a process whose memory nothing else uses; prints what came of it. Argument: a kubeconfig. */
const peakMiB = () => Math.round(process.resourceUsage().maxRSS / 1024);

const client = KubeClient.fromKubeconfig(process.argv[2]!);
const connection = new ClusterConnection(
  client,
  { server: client.server, tenant: 'shop' },
  new Date(8.64e15),
  silent,
  () => {},
);
const before = peakMiB();
const opened = await connection.start(AbortSignal.timeout(280_000)).then(
  () => 'opened',
  (error: Error & { code?: string }) => ({ code: error.code, message: error.message }),
);
const result = { opened, nodes: connection.nodes.size, tookMiB: peakMiB() - before };
await connection.stop();
process.stdout.write(JSON.stringify(result));
