import { LABELS, ROLES } from '../../operator/api/group.ts';
import type { KubeObject } from '../../operator/api/meta.ts';
import type { ProviderContext } from '../contract.ts';

/** ConfigMap in the shoot's namespace with a key per machine, for a cluster that exists as objects only. */
export const MACHINES_CONFIG_MAP = 'machines';

/** A machine in the ConfigMap. Times are RFC 3339. */
export interface KeptMachine {
  /** Absent: a control plane machine. */
  pool?: string;
  /** Number in its pool. */
  number: number;
  zone?: string;
  createdAt: string;
  readyAt: string;
  /** When the cloud interrupts it; absent: never. */
  lostAt?: string;
}

/** Machines by name. An invalid value counts as no machine: it is made again. */
export function keptMachines(configMap: KubeObject | undefined): Map<string, KeptMachine> {
  const machines = new Map<string, KeptMachine>();
  for (const [name, text] of Object.entries((configMap?.data ?? {}) as Record<string, string>)) {
    const machine = parsed(text);
    if (machine) machines.set(name, machine);
  }
  return machines;
}

/** ConfigMap of these machines, independent of their order. */
export function configMapOf(
  ctx: Pick<ProviderContext, 'namespace' | 'shootName' | 'shootNamespace'>,
  machines: ReadonlyMap<string, KeptMachine>,
): KubeObject {
  const names = [...machines.keys()].sort();
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: MACHINES_CONFIG_MAP,
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

function parsed(text: string): KeptMachine | undefined {
  try {
    const machine = JSON.parse(text) as Partial<KeptMachine> | null;
    const isSound =
      Number.isInteger(machine?.number) &&
      [machine?.createdAt, machine?.readyAt].every((time) => Number.isFinite(Date.parse(time ?? '')));
    return isSound ? (machine as KeptMachine) : undefined;
  } catch {
    return undefined;
  }
}
