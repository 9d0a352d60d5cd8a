import { FINALIZER, GROUP, LABELS } from '../../operator/api/group.ts';
import { isNotFound } from '../../operator/kube/errors.ts';
import { SECRETS, type Secret } from '../../operator/kube/resources.ts';
import { applyIfChanged } from '../apply.ts';
import type { ProviderContext } from '../contract.ts';
import type { Marks } from '../nodes.ts';
import type { WantedMachines } from '../pulumi/layers.ts';

/**
 * What is remembered of a shoot's machines across restarts, in the shoot's namespace in the seed. Nothing of it is the truth about
 * the cloud. That it is there says that something may be in the cloud: so it is written before anything is made, and a finalizer
 * keeps it when the namespace goes.
 */
export interface MachinesRecord {
  /** The account that the machines are in: credentials of another one would make others there. */
  account: string;
  /** What the cloud was last asked for, whether or not that has ended. */
  wanted: WantedMachines;
  /** Hash of what the machines were last made to be like. */
  applied?: string;
  /** Hash of what the network was last made to be like. */
  network?: string;
  /** What nodes were last told, by name of the pool. */
  marks?: Record<string, Marks>;
}

export const RECORD_NAME = 'cloud-machines';
const KEY = 'record';

type Place = Pick<ProviderContext, 'seed' | 'namespace' | 'shootName' | 'shootNamespace'>;

/** The record in the seed; undefined: nothing was ever made. */
export async function readRecord({ seed, namespace }: Place): Promise<MachinesRecord | undefined> {
  const secret = await seed.getOrUndefined<Secret>(SECRETS, RECORD_NAME, namespace);
  const text = secret?.data?.[KEY];
  return text === undefined ? undefined : (JSON.parse(Buffer.from(text, 'base64').toString()) as MachinesRecord);
}

export async function saveRecord(ctx: Place, record: MachinesRecord): Promise<void> {
  const labels = {
    [LABELS.managedBy]: 'coppice',
    [LABELS.shoot]: ctx.shootName,
    [LABELS.shootNamespace]: ctx.shootNamespace,
  };
  const secret: Secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: RECORD_NAME, namespace: ctx.namespace, labels, finalizers: [FINALIZER] },
    // It holds the tokens that machines were last told.
    type: `${GROUP}/${RECORD_NAME}`,
    data: { [KEY]: Buffer.from(JSON.stringify(record)).toString('base64') },
  };
  await applyIfChanged(ctx.seed, secret);
}

/** Nothing is left in the cloud. */
export async function removeRecord({ seed, namespace }: Place): Promise<void> {
  const there = await seed.getOrUndefined<Secret>(SECRETS, RECORD_NAME, namespace);
  if (!there) return;
  await seed.delete(SECRETS, RECORD_NAME, namespace);
  await seed.mergePatch(SECRETS, RECORD_NAME, namespace, { metadata: { finalizers: null } }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
  });
}
