import type { Hub } from '../../api/hub.ts';
import type { Membership } from '../../api/membership.ts';
import { connect } from '../connect.ts';
import type { Context } from '../context.ts';
import { UsageError } from '../errors.ts';
import { HUB_KIND, MEMBERSHIP_KIND } from '../kinds.ts';
import { printObject } from '../output.ts';
import { HUBS_HEADER, hubRows, MEMBERSHIPS_HEADER, membershipRows } from '../render/hubs.ts';
import { renderTable } from '../render/table.ts';
import { listOf, namesOf, notFound } from './get.ts';

/** `coppice hubs [NAME]`, `coppice hubs audit [--clean]`. */
export async function run(context: Context): Promise<number | undefined> {
  const { options, positionals, terminal, signal } = context;
  const [name] = positionals;
  if (name === 'audit') return (await import('./hubs-audit.ts')).run(context);
  if (options.flag('clean')) throw new UsageError('--clean works only with "coppice hubs audit"');
  const { client } = await connect(context);
  const namespace = options.text('namespace');
  const [all, found] = await Promise.all([
    client.list<Hub>(HUB_KIND.resource, { signal }),
    client.list<Membership>(MEMBERSHIP_KIND.resource, { namespace, signal }),
  ]);
  const hubs = all.items.filter(({ metadata }) => name === undefined || metadata.name === name);
  if (name !== undefined && hubs.length === 0) throw notFound(HUB_KIND, name, undefined, namesOf(all.items));
  const memberships = found.items.filter(({ spec }) => name === undefined || spec.hub === name);
  const format = options.text('output');
  if (format === 'json' || format === 'yaml') {
    await printObject(terminal, format, listOf([...hubs, ...memberships]));
    return undefined;
  }
  if (hubs.length === 0) {
    terminal.note(
      'There are no hubs: "coppice apply -f examples/hubs/clusterprofile.yaml" creates one. See docs/tasks/hub.md.',
    );
    return undefined;
  }
  const table = { paint: terminal.paint, ...(terminal.width === undefined ? {} : { width: terminal.width }) };
  terminal.print(...renderTable(HUBS_HEADER, hubRows(hubs, Date.now()), table));
  if (memberships.length > 0)
    terminal.print('', ...renderTable(MEMBERSHIPS_HEADER, membershipRows(memberships, Date.now()), table));
  return undefined;
}
