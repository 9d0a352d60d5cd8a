import { openProviders, providerFor } from '../../../providers/index.ts';
import type { BurstPolicy } from '../../api/burstpolicy.ts';
import { previewBurst } from '../../controllers/burst/preview.ts';
import { pulumiEngine, pulumiHome } from '../../garden/toolchain/pulumi-engine.ts';
import type { KubeClient } from '../../kube/client.ts';
import { silent } from '../../kube/log.ts';
import type { Context } from '../context.ts';
import { EXIT } from '../errors.ts';
import { printObject } from '../output.ts';
import { planLines } from '../render/burst-plan.ts';
import { textCell } from '../render/text.ts';

/** `coppice burst plan [NAME]` for these policies. */
export async function plan(context: Context, garden: KubeClient, policies: readonly BurstPolicy[]): Promise<number> {
  const { options, terminal } = context;
  const { policies: planned, gaps } = await looked(context, garden, policies);
  const format = options.text('output');
  if (format === 'json' || format === 'yaml') {
    const plans = planned.map(({ metadata: { namespace, name }, status }) => ({
      namespace,
      name,
      conditions: status?.conditions,
      demand: status?.demand,
      candidates: status?.candidates,
      decisions: status?.decisions,
    }));
    await printObject(terminal, format, { plans, gaps });
    return gaps.length > 0 ? EXIT.failed : EXIT.ok;
  }
  for (const [index, policy] of planned.entries()) terminal.print(...(index > 0 ? [''] : []), ...planLines(policy));
  for (const gap of gaps)
    terminal.note(`${terminal.notePaint('bad', 'error:')} ${textCell(`could not check: ${gap}`)}`);
  terminal.note('Nothing was done.');
  // Work may fit on clusters that could not be read.
  return gaps.length > 0 ? EXIT.failed : EXIT.ok;
}

/** Observes the policies once, like the operator. */
async function looked({ env, signal }: Context, garden: KubeClient, policies: readonly BurstPolicy[]) {
  const uids = new Set(policies.map(({ metadata }) => metadata.uid));
  const providers = openProviders({
    engine: pulumiEngine(env, silent),
    home: pulumiHome(env),
    log: silent,
  });
  try {
    return await previewBurst(
      garden,
      env.COPPICE_NAMESPACE ?? 'kube-system',
      (profile) => providerFor(profile, providers, { simulate: false, withAccount: true }),
      ({ metadata }) => uids.has(metadata.uid),
      signal,
    );
  } finally {
    await providers.close();
  }
}
