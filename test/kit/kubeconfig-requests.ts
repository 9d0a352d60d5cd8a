import type { KubeObject } from '../../operator/api/meta.ts';
import { OPERATOR_USER } from '../../operator/api/roles.ts';
import type { Shoot } from '../../operator/api/shoot.ts';
import { answerRequest } from '../../operator/controllers/kubeconfigs/controller.ts';
import { requestsInformer } from '../../operator/controllers/kubeconfigs/wiring.ts';
import { runController } from '../../operator/kube/controller.ts';
import { silent } from '../../operator/kube/log.ts';
import { keyOf } from '../../operator/kube/resources.ts';
import { WorkQueue } from '../../operator/kube/workqueue.ts';
import { requestedKey } from '../../operator/pki/requested-key.ts';
import type { TestApiserver } from './apiserver.ts';

type KubeconfigDependencies = Parameters<typeof answerRequest>[0];

export type AnsweredRequests = KubeconfigDependencies & { stop: () => Promise<void> };

/** Runs the operator's part that answers requests for kubeconfigs of this cluster. The API server is garden and cluster at once. */
export async function answerRequests(api: TestApiserver, cluster: KubeObject, shoot: Shoot): Promise<AnsweredRequests> {
  const key = keyOf(cluster);
  const garden = api.connect(await api.certificate(OPERATOR_USER));
  const requests = requestsInformer(garden, silent);
  const world: KubeconfigDependencies = {
    garden,
    requests,
    clusters: { get: (one) => (one === key ? (cluster as never) : undefined) },
    shoots: { get: (one) => (one === key ? shoot : undefined) },
    log: silent,
    now: () => new Date(),
    authority: async () => api.keys.ca,
    publicKey: requestedKey,
  };
  const queue = new WorkQueue();
  requests.onChange(({ object }) => queue.add(object.metadata.name));
  requests.start();
  await requests.whenSynced(AbortSignal.timeout(60_000));
  const controller = runController({
    name: 'kubeconfigs',
    queue,
    reconcile: (name, stop) => answerRequest(world, name, stop),
  });
  return {
    ...world,
    stop: async () => {
      await controller.stop();
      await requests.stop();
    },
  };
}
