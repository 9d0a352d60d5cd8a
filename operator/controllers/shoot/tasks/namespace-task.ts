import type { Task } from '../../../flow/graph.ts';
import { namespaceManifest } from '../../../shoot/namespace.ts';
import { earlierNamespaceGone } from '../deletion/deletion-tasks.ts';
import type { Operation } from '../operation.ts';
import { GARDEN_ANNOTATION, namespaceIn, notOurs, otherOwnerIn, SHOOT_UID_ANNOTATION } from '../ownership.ts';
import { VNI_ANNOTATION } from '../vni.ts';

const MINUTE = 60_000;

/** First task of every graph. */
export const namespaceTask = (op: Operation): Task => ({
  id: 'namespace',
  title: 'Making the namespace in the seed',
  expectedMs: 30,
  timeoutMs: 2 * MINUTE,
  run: (signal) => makeNamespace(op, signal),
});

/** Creates the shoot's namespace in the seed with its NetworkPolicies, before anything runs there. */
async function makeNamespace(op: Operation, signal: AbortSignal): Promise<void> {
  // Record the seed first: another operator may have to delete the shoot.
  if (!op.shoot.status?.seedName) await op.tell(signal);
  await earlierNamespaceGone(op, signal);
  const found = await namespaceIn(op.seed, op.values.namespace, signal);
  const otherOwner = otherOwnerIn(found, op.shoot, op.deps.gardenID);
  if (otherOwner) throw notOurs(op.seed.name, op.values.namespace, otherOwner);
  const object = namespaceManifest(op.values, op.provider.privilegedInSeed ? 'privileged' : 'restricted');
  object.metadata.annotations = {
    ...object.metadata.annotations,
    [VNI_ANNOTATION]: String(op.vni),
    [GARDEN_ANNOTATION]: op.deps.gardenID,
    ...(op.shoot.metadata.uid && { [SHOOT_UID_ANNOTATION]: op.shoot.metadata.uid }),
  };
  await op.seed.applier.apply(object, signal);
  op.namespaceIsNew = found === undefined;
  await Promise.all(op.networkPolicies.map((policy) => op.seed.applier.apply(policy, signal)));
}
