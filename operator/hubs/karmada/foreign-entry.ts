import type { HubSpec } from '../../api/hub.ts';
import { SECRETS } from '../../kube/resources.ts';
import { type ForeignEntry, isForeign, type Member, type Reader, takenOver } from '../contract.ts';
import { CLUSTER_NAMESPACE, CLUSTERS, type KarmadaCluster } from './cluster.ts';

/** A Cluster that somebody else made for the same cluster, with the Secrets that it refers to where ours would be. */
export async function foreignEntryIn(
  hub: Reader,
  { id }: Member,
  { karmada }: HubSpec,
): Promise<ForeignEntry | undefined> {
  const clusters = (await hub.list(CLUSTERS)) as KarmadaCluster[];
  const found = clusters.find((one) => one.spec?.id === id && isForeign(one));
  if (!found) return undefined;
  const { name } = found.metadata;
  const { secretRef, impersonatorSecretRef, syncMode } = found.spec ?? {};
  const wanted = [`${CLUSTER_NAMESPACE}/${name}`, `${CLUSTER_NAMESPACE}/${name}-impersonator`];
  const refs = [secretRef, impersonatorSecretRef].flatMap((ref) =>
    ref && wanted.includes(`${ref.namespace}/${ref.name}`) ? [ref.name] : [],
  );
  const secrets = await Promise.all(refs.map((ref) => hub.get(SECRETS, ref, CLUSTER_NAMESPACE)));
  const whyNot = whyNotOurs(name, syncMode, karmada?.syncMode ?? 'Push');
  return {
    name,
    places: [
      takenOver(CLUSTERS, found),
      ...secrets.flatMap((secret) => (secret && isForeign(secret) ? [takenOver(SECRETS, secret)] : [])),
    ],
    ...(whyNot && { whyNot }),
  };
}

/** Two agents would both apply, and so would an agent and Karmada's own controllers. */
function whyNotOurs(name: string, found: string | undefined, wanted: 'Push' | 'Pull'): string | undefined {
  if (found !== 'Push') return `Cluster ${name} of the hub has an agent of somebody else's (syncMode ${found})`;
  return wanted === 'Pull' ? `Cluster ${name} of the hub is of syncMode Push, and the Hub of Pull` : undefined;
}
