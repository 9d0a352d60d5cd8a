import type { Machine } from '../../../../providers/contract.ts';
import type { Node } from '../../../kube/resources.ts';
import type { ControlPlaneGroupObservation, ControlPlaneGroupPlan } from '../../../shoot/control-plane-group.ts';
import type { ControlPlaneSizePlan } from '../../../shoot/control-plane-size.ts';
import { uncordon } from '../machines/drain.ts';
import { drainMachine } from '../machines/machine-removal.ts';
import { DRAINING_ANNOTATION } from '../machines/scale-in.ts';
import type { Operation } from '../operation.ts';
import { shootConnection } from '../tasks/apply-inside.ts';
import { ofOtherVersion } from './control-plane-group-seen.ts';
import { isChangingKeys } from './encryption.ts';

/** Drains a control plane machine within the drain timeout. */
export async function drainOf(
  op: Operation,
  machines: readonly Machine[],
  name: string,
  signal: AbortSignal,
): Promise<void> {
  const machine = machines.find((one) => one.name === name);
  if (machine) await drainMachine(op, shootConnection(op), machine, signal);
}

/**
 * Drains a machine in a cloud that another one replaces.
 * @param wanted the replacement, as text
 */
export async function makeWay(op: Operation, machine: Machine, wanted: string, signal: AbortSignal): Promise<void> {
  op.deps.recordEvent(
    op.shoot,
    'Normal',
    'ControlPlaneMachineReplaced',
    `${machine.nodeName} makes way for a machine with ${wanted}`,
  );
  await drainMachine(op, shootConnection(op), machine, signal);
  op.state.draining.delete(machine.nodeName);
}

/** Uncordons machines that were drained and are recreated. */
export async function letIn(op: Operation, machines: readonly Machine[], nodes: readonly Node[]): Promise<void> {
  for (const { nodeName, outdated, phase } of machines) {
    if (outdated || phase === 'Terminating') continue;
    const node = nodes.find(({ metadata }) => metadata.name === nodeName);
    if (!node?.metadata.annotations?.[DRAINING_ANNOTATION]) continue;
    op.state.draining.delete(nodeName);
    await uncordon(shootConnection(op).client, node);
  }
}

/** Progress of a replacement. */
interface Replaced {
  /** Names of machines yet to be replaced. */
  outdated: readonly string[];
  /** Present or requested number. */
  asked: number;
  desired: number;
}

/** Progress of a replacement in a cloud; ending machines count as replaced. Pure. */
export function replacedIn({
  desired,
  machines,
}: Pick<ControlPlaneGroupObservation, 'desired' | 'machines'>): Replaced {
  const there = machines.filter(({ going }) => !going);
  const outdated = there.filter((machine) => machine.outdated).map(({ name }) => name);
  return { outdated, asked: there.length, desired };
}

/** Reports the sequential replacement of control plane machines: how many are done, and what is awaited. */
export class Replacement {
  readonly #op: Operation;
  readonly #wanted: string;
  /** Whether any machine was outdated so far. */
  #hasBegun = false;

  /** @param wanted what machines get, as text */
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

/** What a recreated machine gets, as text. */
export const wantedOfMachines = (op: Operation): string =>
  `Kubernetes ${op.values.version}${isChangingKeys(op) ? ' and the present keys of Secrets' : ''}`;

/** What replacements in a cloud get, as text. @param nodes before the first replacement */
export function wantedInCloud(op: Operation, nodes: readonly Node[]): string {
  if (ofOtherVersion(nodes, op.values.version).length > 0) return wantedOfMachines(op);
  return isChangingKeys(op) ? 'the present keys of Secrets' : 'certificates that do not end soon';
}

/** Text of condition Rolling. */
function replacementLine(wanted: string, { outdated, asked, desired }: Replaced, waitFor: string | undefined): string {
  const more = asked > desired ? `, ${asked - desired} of them only meanwhile` : '';
  return [
    `${asked - outdated.length} of ${asked} machines of the control plane have ${wanted}${more}`,
    ...(outdated.length > 0 ? [`still to be replaced: ${outdated.join(', ')}`] : []),
    ...(waitFor === undefined ? [] : [`waiting for ${waitFor}`]),
  ].join('; ');
}
