import { type Audit, HubAudit } from '../../controllers/membership/audit.ts';
import { cleanUpMembership } from '../../controllers/membership/clean.ts';
import { isOurs, type LeftOver } from '../../controllers/membership/left-overs.ts';
import { connect } from '../connect.ts';
import type { Context } from '../context.ts';
import { EXIT } from '../errors.ts';
import { printObject } from '../output.ts';
import { LEFT_OVERS_HEADER, leftOverRows } from '../render/hubs.ts';
import { renderTable } from '../render/table.ts';
import { textCell } from '../render/text.ts';

/** Time that a hub's controllers get to remove objects. Karmada's Works are read every 10 s. */
const PATIENCE_MS = 30_000;

/** `coppice hubs audit [--clean]`. */
export async function run(context: Context): Promise<number> {
  const { options, terminal, signal, env } = context;
  const { client } = await connect(context);
  const audit = new HubAudit(client, env.COPPICE_NAMESPACE ?? 'kube-system');
  const note = (text: string) => terminal.note(`${terminal.notePaint('bad', 'error:')} ${textCell(text)}`);
  try {
    const found = await audit.look(signal);
    if (!options.flag('clean')) {
      await show(context, found);
      for (const gap of found.gaps) note(`could not check: ${gap}`);
      if (found.leftOvers.some(isOurs))
        terminal.note('Nothing was removed; to remove all of this, run "coppice hubs audit --clean".');
      return isClear(found) ? EXIT.ok : EXIT.failed;
    }
    const told = ({ cluster, hub }: LeftOver['owner'], where: string) =>
      terminal.note(
        textCell(
          `Removing from ${where} what the membership of cluster ${cluster.namespace}/${cluster.name} in Hub ${hub} left behind ...`,
        ),
      );
    const how = { told, patienceMs: PATIENCE_MS, now: () => new Date() };
    const problems = await cleanUpMembership(client, found, how, signal);
    const after = await audit.look(signal);
    await show(context, after);
    for (const gap of after.gaps) note(`could not check: ${gap}`);
    for (const problem of problems) note(`not removed: ${problem}`);
    return isClear(after) ? EXIT.ok : EXIT.failed;
  } finally {
    await audit.close();
  }
}

/** A gap may hide anything. */
const isClear = ({ leftOvers, gaps }: Audit): boolean => leftOvers.length + gaps.length === 0;

async function show({ options, terminal }: Context, { leftOvers, gaps, knows }: Audit): Promise<void> {
  const format = options.text('output');
  if (format === 'json' || format === 'yaml') {
    await printObject(terminal, format, { leftOvers: leftOvers.map(plain), gaps });
    return;
  }
  if (leftOvers.length === 0) {
    terminal.note(
      'Nothing is left over: every object with the label of a Membership belongs to a Membership that exists.',
    );
    return;
  }
  // Do not cut lines to the width: each ends with what to do.
  const rows = leftOverRows(leftOvers, knows.garden);
  terminal.print(...renderTable(LEFT_OVERS_HEADER, rows, { paint: terminal.paint }));
}

/** A left-over for JSON. */
const plain = ({ on, where, resource, namespace, name, owner, cause, heldBy }: LeftOver) => ({
  on,
  where,
  kind: resource.kind,
  group: resource.group,
  ...(namespace && { namespace }),
  name,
  cause,
  owner,
  ...(heldBy && { heldBy }),
});
