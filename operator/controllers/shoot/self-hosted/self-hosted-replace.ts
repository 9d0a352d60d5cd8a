import type { Machine } from '../../../../providers/contract.ts';
import type { Node } from '../../../kube/resources.ts';
import type { ControlPlaneGroupObservation, ControlPlaneGroupPlan } from '../../../shoot/control-plane-group.ts';
import type { ControlPlaneSizePlan } from '../../../shoot/control-plane-size.ts';
import { uncordon } from '../machines/drain.ts';
import { drainMachine } from '../machines/machine-removal.ts';
import { DRAINING_ANNOTATION } from '../machines/scale-in.ts';
import type { Operation } from '../operation.ts';
import { inside } from '../tasks/apply-inside.ts';
import { isChangingKeys } from './encryption.ts';

/** Has pods leave a machine of the control plane, as long as they are waited for. */
export async function drainOf(
  op: Operation,
  machines: readonly Machine[],
  name: string,
  signal: AbortSignal,
): Promise<void> {
  const machine = machines.find((one) => one.name === name);
  if (machine) await drainMachine(op, inside(op), machine, signal);
}

/** Has pods leave a machine of a cloud that goes for good, since another one with what is wanted takes its place. */
export async function makeWay(op: Operation, machine: Machine, signal: AbortSignal): Promise<void> {
  op.deps.recordEvent(
    op.shoot,
    'Normal',
    'ControlPlaneMachineReplaced',
    `${machine.nodeName} makes way for a machine with ${wantedInCloud(op)}`,
  );
  await drainMachine(op, inside(op), machine, signal);
  op.state.draining.delete(machine.nodeName);
}

/** Lets pods in again on machines that were drained to be made anew, and are. */
export async function letIn(op: Operation, machines: readonly Machine[], nodes: readonly Node[]): Promise<void> {
  for (const { nodeName, outdated, phase } of machines) {
    if (outdated || phase === 'Terminating') continue;
    const node = nodes.find(({ metadata }) => metadata.name === nodeName);
    if (!node?.metadata.annotations?.[DRAINING_ANNOTATION]) continue;
    op.state.draining.delete(nodeName);
    await uncordon(inside(op).client, node);
  }
}

/** How far the replacement of machines is, in numbers of them. */
interface Replaced {
  outdated: number;
  /** How many there are, or are to be for now. */
  asked: number;
  desired: number;
}

/** What a Replacement tells of machines of a cloud; those that are ending have been replaced. Pure. */
export function replacedIn({
  desired,
  machines,
}: Pick<ControlPlaneGroupObservation, 'desired' | 'machines'>): Replaced {
  const there = machines.filter(({ going }) => !going);
  return { outdated: there.filter(({ outdated }) => outdated).length, asked: there.length, desired };
}

/** Tells, as long as machines of a control plane are made anew one after the other, how many are and what is waited for. */
export class Replacement {
  readonly #op: Operation;
  readonly #wanted: string;
  /** Machines that were outdated when it was first looked; 0: none was yet. */
  #begun = 0;

  /** @param wanted what machines get, in words */
  constructor(op: Operation, wanted: string) {
    this.#op = op;
    this.#wanted = wanted;
  }

  tell(seen: Replaced, { action, waitFor }: ControlPlaneSizePlan | ControlPlaneGroupPlan): void {
    this.#begun ||= seen.outdated;
    this.#say(this.#begun === 0 || !(action || waitFor) ? undefined : replacementLine(this.#wanted, seen, waitFor));
  }

  end(): void {
    this.#say(undefined);
  }

  #say(line: string | undefined): void {
    const { state } = this.#op;
    if (state.replacing === line) return;
    state.replacing = line;
    this.#op.notice();
  }
}

/** What a machine gets when it is made anew, in words. */
export const wantedOfMachines = (op: Operation): string =>
  `Kubernetes ${op.values.version}${isChangingKeys(op) ? ' and the present keys of Secrets' : ''}`;

/** The same of machines of a cloud, where others take their places. */
export const wantedInCloud = (op: Operation): string =>
  isChangingKeys(op) ? 'the present keys of Secrets' : 'certificates that do not end soon';

/** What people read of it in condition Rolling. */
function replacementLine(wanted: string, { outdated, asked, desired }: Replaced, waitFor: string | undefined): string {
  const done = `${asked - outdated} of ${asked} machines of the control plane have ${wanted}`;
  const more = asked > desired ? `, ${asked - desired} of them only meanwhile` : '';
  return `${done}${more}${waitFor === undefined ? '' : `; waiting for ${waitFor}`}`;
}
