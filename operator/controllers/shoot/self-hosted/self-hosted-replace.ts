import type { Machine } from '../../../../providers/contract.ts';
import type { Node } from '../../../kube/resources.ts';
import type { ControlPlaneGroupObservation, ControlPlaneGroupPlan } from '../../../shoot/control-plane-group.ts';
import type { ControlPlaneSizePlan } from '../../../shoot/control-plane-size.ts';
import { uncordon } from '../machines/drain.ts';
import { drainMachine } from '../machines/machine-removal.ts';
import { DRAINING_ANNOTATION } from '../machines/scale-in.ts';
import type { Operation } from '../operation.ts';
import { inside } from '../tasks/apply-inside.ts';
import { ofOtherVersion } from './control-plane-group-seen.ts';
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

/**
 * Has pods leave a machine of a cloud that goes for good, since another one takes its place.
 * @param wanted what that one has, in words
 */
export async function makeWay(op: Operation, machine: Machine, wanted: string, signal: AbortSignal): Promise<void> {
  op.deps.recordEvent(
    op.shoot,
    'Normal',
    'ControlPlaneMachineReplaced',
    `${machine.nodeName} makes way for a machine with ${wanted}`,
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

/** How far the replacement of machines is. */
interface Replaced {
  /** Machines that are still to be replaced, by their names. */
  outdated: readonly string[];
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
  const outdated = there.filter((machine) => machine.outdated).map(({ name }) => name);
  return { outdated, asked: there.length, desired };
}

/** Tells, as long as machines of a control plane are made anew one after the other, how many are and what is waited for. */
export class Replacement {
  readonly #op: Operation;
  readonly #wanted: string;
  /** Whether any machine was outdated yet. */
  #hasBegun = false;

  /** @param wanted what machines get, in words */
  constructor(op: Operation, wanted: string) {
    this.#op = op;
    this.#wanted = wanted;
  }

  tell(seen: Replaced, { action, waitFor }: ControlPlaneSizePlan | ControlPlaneGroupPlan): void {
    this.#hasBegun ||= seen.outdated.length > 0;
    this.#say(this.#hasBegun && (action || waitFor) ? replacementLine(this.#wanted, seen, waitFor) : undefined);
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

/** The same of machines of a cloud, where others take their places. @param nodes theirs, before any is replaced */
export function wantedInCloud(op: Operation, nodes: readonly Node[]): string {
  if (ofOtherVersion(nodes, op.values.version).length > 0) return wantedOfMachines(op);
  return isChangingKeys(op) ? 'the present keys of Secrets' : 'certificates that do not end soon';
}

/** What people read of it in condition Rolling. */
function replacementLine(wanted: string, { outdated, asked, desired }: Replaced, waitFor: string | undefined): string {
  const more = asked > desired ? `, ${asked - desired} of them only meanwhile` : '';
  return [
    `${asked - outdated.length} of ${asked} machines of the control plane have ${wanted}${more}`,
    ...(outdated.length > 0 ? [`still to be replaced: ${outdated.join(', ')}`] : []),
    ...(waitFor === undefined ? [] : [`waiting for ${waitFor}`]),
  ].join('; ');
}
