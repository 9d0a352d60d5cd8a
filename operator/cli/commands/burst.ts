import type { BurstPolicy } from '../../api/burstpolicy.ts';
import { connect } from '../connect.ts';
import type { Context } from '../context.ts';
import { UsageError } from '../errors.ts';
import { BURST_POLICY } from '../kinds.ts';
import { printObject } from '../output.ts';
import { explainPolicy, POLICIES_HEADER, policyRows } from '../render/burst.ts';
import { renderTable } from '../render/table.ts';
import { listOf, namesOf, notFound } from './get.ts';

/** `coppice burst [explain|plan [NAME]]`. */
export async function run(context: Context): Promise<number | undefined> {
  const { options, positionals, terminal, signal } = context;
  const [what, name] = positionals;
  if (what !== undefined && what !== 'explain' && what !== 'plan')
    throw new UsageError(
      `unknown command "coppice burst ${what}"; use "coppice burst explain" or "coppice burst plan"`,
    );
  const { client, namespace } = await connect(context);
  const everywhere = options.flag('all-namespaces');
  if (name !== undefined && everywhere) throw new UsageError('a NAME and --all-namespaces cannot be used together');
  const format = options.text('output');
  const { items } = await client.list<BurstPolicy>(BURST_POLICY.resource, {
    ...(!everywhere && { namespace }),
    signal,
  });
  const policies = items.filter(({ metadata }) => name === undefined || metadata.name === name);
  if (name !== undefined && policies.length === 0) throw notFound(BURST_POLICY, name, namespace, namesOf(items));
  if (what === 'plan' && policies.length > 0) return (await import('./burst-plan.ts')).plan(context, client, policies);
  if (format === 'json' || format === 'yaml') {
    await printObject(terminal, format, name === undefined ? listOf(policies) : policies[0]!);
    return undefined;
  }
  if (policies.length === 0) {
    terminal.note(
      `There are no BurstPolicies${everywhere ? '' : ` in namespace ${namespace}`}. For an example, see examples/burst/policy.yaml and docs/tasks/burst.md.`,
    );
    return undefined;
  }
  const table = { paint: terminal.paint, ...(terminal.width === undefined ? {} : { width: terminal.width }) };
  const now = Date.now();
  if (what === undefined) terminal.print(...renderTable(POLICIES_HEADER, policyRows(policies, now), table));
  else
    for (const [index, policy] of policies.entries())
      terminal.print(...(index > 0 ? [''] : []), ...explainPolicy(policy, now, table));
  return undefined;
}
