import type { Problem } from '../../../providers/contract.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import { parseCron } from '../../api/cron.ts';
import { madeModeOf, type WorkerCluster } from '../../api/workercluster.ts';
import { problem } from '../spec-problems.ts';

/** Problems of the pools' autoscaling settings. */
export const autoscaleProblems = ({ spec }: WorkerCluster, profile: CloudProfile): Problem[] => [
  ...deciderProblems(spec, profile),
  ...budgetProblems(spec),
];

/** By the requested mode: a simulated managed cluster is hosted, so that manifests can be tried. */
function deciderProblems(spec: WorkerCluster['spec'], profile: CloudProfile): Problem[] {
  if ((madeModeOf(spec) ?? profile.spec.defaults?.mode ?? 'Hosted') === 'Managed') return [];
  return (spec.pools ?? []).flatMap(({ name, autoscale }, index) =>
    autoscale === 'Cloud'
      ? [
          problem(
            `pools[${index}].autoscale`,
            `no cloud has an autoscaler for pool ${name}, whose machines Coppice makes: use Coppice, or None`,
          ),
        ]
      : [],
  );
}

/** The CRD's pattern also accepts backward ranges. */
const budgetProblems = ({ pools = [] }: WorkerCluster['spec']): Problem[] =>
  pools.flatMap(({ disruption }, pool) =>
    (disruption?.budgets ?? []).flatMap(({ schedule }, budget) =>
      schedule === undefined || parseCron(schedule) !== undefined
        ? []
        : [
            problem(
              `pools[${pool}].disruption.budgets[${budget}].schedule`,
              `"${schedule}" is no cron expression of five fields such as "0 8 * * 1-5"`,
            ),
          ],
    ),
  );
