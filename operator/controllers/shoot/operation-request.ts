import { ANNOTATIONS } from '../../api/group.ts';
import type { Shoot } from '../../api/shoot.ts';
import { SHOOTS } from '../../kube/resources.ts';
import type { Operation } from './operation.ts';

/** Gardener's operation for rotating the encryption key of Secrets. */
export const ROTATE = 'rotate-etcd-encryption-key';

/** Whether the operation annotation requests this. Pure. */
export const asksFor = ({ metadata }: Pick<Shoot, 'metadata'>, operation: string): boolean =>
  metadata.annotations?.[ANNOTATIONS.operation] === operation;

/** Removes the annotation: the request is done, recorded, or refused. */
export async function takeRequest({ shoot, deps }: Operation, signal: AbortSignal): Promise<void> {
  const { name, namespace } = shoot.metadata;
  const taken = { metadata: { annotations: { [ANNOTATIONS.operation]: null } } };
  deps.shoots.absorb(await deps.garden.mergePatch<Shoot>(SHOOTS, name, namespace, taken, { signal }));
}
