import { type ForeignEntry, isForeign, type Member, type Reader, takenOver } from './contract.ts';
import { MANAGEDCLUSTERS } from './managed-cluster.ts';

/** Claim of a ManagedCluster with the UID of the cluster's namespace kube-system: its agent reports it. */
const ID = 'id.k8s.io';

/** A ManagedCluster that somebody else's agent has registered for the same cluster. */
export async function foreignEntryIn(hub: Reader, { id }: Member): Promise<ForeignEntry | undefined> {
  const found = (await hub.list(MANAGEDCLUSTERS)).find((one) => {
    const claims = (one.status?.clusterClaims ?? []) as { name?: string; value?: string }[];
    return isForeign(one) && claims.some(({ name, value }) => name === ID && value === id);
  });
  if (!found) return undefined;
  const { name } = found.metadata;
  // Its agent holds a certificate in its own name, and would go on beside ours.
  const whyNot = `ManagedCluster ${name} of the hub has an agent of somebody else's`;
  return { name, places: [takenOver(MANAGEDCLUSTERS, found)], whyNot };
}
