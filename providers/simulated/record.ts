import { LABELS, ROLES } from '../../operator/api/group.ts';
import type { KubeObject } from '../../operator/api/meta.ts';
import type { ProviderContext } from '../contract.ts';

/** ConfigMap in the shoot's namespace, a key a machine: what there is of a cluster that exists on record only. */
export const MACHINES_RECORD = 'machines';

/** One machine on record. Times are RFC 3339. */
export interface RecordedMachine {
  /** Absent: a machine of the control plane. */
  pool?: string;
  /** Number in its pool. */
  number: number;
  zone?: string;
  createdAt: string;
  readyAt: string;
  /** When the cloud takes it away; absent: never. */
  lostAt?: string;
}

/** Machines by name. A value that somebody broke counts as no machine: it is made anew. */
export function machinesOnRecord(record: KubeObject | undefined): Map<string, RecordedMachine> {
  const machines = new Map<string, RecordedMachine>();
  for (const [name, text] of Object.entries((record?.data ?? {}) as Record<string, string>)) {
    const machine = parsed(text);
    if (machine) machines.set(name, machine);
  }
  return machines;
}

/** The ConfigMap of these machines; equal for equal ones, in whatever order they come. */
export function recordOf(
  ctx: Pick<ProviderContext, 'namespace' | 'shootName' | 'shootNamespace'>,
  machines: ReadonlyMap<string, RecordedMachine>,
): KubeObject {
  const names = [...machines.keys()].sort();
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: MACHINES_RECORD,
      namespace: ctx.namespace,
      labels: {
        [LABELS.managedBy]: 'coppice',
        [LABELS.shoot]: ctx.shootName,
        [LABELS.shootNamespace]: ctx.shootNamespace,
        [LABELS.role]: ROLES.machine,
      },
    },
    data: Object.fromEntries(names.map((name) => [name, JSON.stringify(machines.get(name))])),
  };
}

function parsed(text: string): RecordedMachine | undefined {
  try {
    const machine = JSON.parse(text) as Partial<RecordedMachine> | null;
    const isSound =
      Number.isInteger(machine?.number) &&
      [machine?.createdAt, machine?.readyAt].every((time) => Number.isFinite(Date.parse(time ?? '')));
    return isSound ? (machine as RecordedMachine) : undefined;
  } catch {
    return undefined;
  }
}
