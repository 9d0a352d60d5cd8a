import { LABELS } from '../../api/group.ts';
import { technicalID } from '../../api/names.ts';
import type { Shoot } from '../../api/shoot.ts';
import type { KubeClient } from '../../kube/client.ts';
import { Informer } from '../../kube/informer.ts';
import type { Log } from '../../kube/log.ts';
import { type CertificateSigningRequest, CSRS, decodeSecret } from '../../kube/resources.ts';
import type { KeyPair } from '../../pki/certificates.ts';
import { requestedKey } from '../../pki/requested-key.ts';
import { keyPair, PKI_SECRET } from '../../shoot/pki.ts';
import { type Core, type Part, workersOfNamespace } from '../core.ts';
import { notOurs, otherOwnerIn } from '../shoot/ownership.ts';
import { answerRequest, BY_REQUESTER, keptRequest } from './controller.ts';
import { requesterOf } from './decide.ts';

const WORKERS = 8;

/** Creates the controller of kubeconfig requests. */
export function wireKubeconfigs(core: Core): Part {
  const { garden, clusters, shoots, log } = core;
  const queue = core.queue('kubeconfigs', { perNamespace: workersOfNamespace(WORKERS) });
  const requests = requestsInformer(garden, log);
  const world = {
    garden,
    requests,
    clusters,
    shoots,
    log,
    now: core.now,
    authority: (shoot: Shoot, signal: AbortSignal) => authorityOf(core, shoot, signal),
    publicKey: requestedKey,
  };
  requests.onChange(({ object }) => queue.add(keyIn(object)));
  return {
    caches: [requests],
    controllers: [
      {
        name: 'kubeconfigs',
        queue,
        concurrency: WORKERS,
        timeoutMs: 60_000,
        reconcile: (key, stop) => answerRequest(world, key.slice(key.indexOf('/') + 1), stop),
      },
    ],
  };
}

/** Informer of kubeconfig requests only; a garden has many other CertificateSigningRequests. */
export const requestsInformer = (garden: KubeClient, log: Log): Informer<CertificateSigningRequest> =>
  new Informer<CertificateSigningRequest>(garden, CSRS, {
    log,
    labelSelector: `${LABELS.workerCluster},${LABELS.workerClusterNamespace}`,
    transform: keptRequest,
    indexes: { [BY_REQUESTER]: (csr) => [requesterOf(csr)] },
  });

/** Queue key by requester, for fairness: labels may name anybody's cluster. */
export const keyIn = (csr: CertificateSigningRequest): string => `${requesterOf(csr)}/${csr.metadata.name}`;

async function authorityOf(
  { gardenID, registry, seeds }: Core,
  shoot: Shoot,
  signal: AbortSignal,
): Promise<KeyPair | undefined> {
  const seed = seeds.get(shoot.status?.seedName ?? '');
  if (!seed) return undefined;
  const access = await registry.open(seed, signal);
  const { name, namespace = '' } = shoot.metadata;
  const id = technicalID(namespace, name);
  const otherOwner = otherOwnerIn(access.namespaces.get(id), shoot, gardenID);
  if (otherOwner) throw notOurs(seed.metadata.name, id, otherOwner);
  const pki = decodeSecret(access.secrets.get(`${id}/${PKI_SECRET}`)?.data);
  return pki['ca.crt'] && pki['ca.key'] ? keyPair(pki, 'ca') : undefined;
}
