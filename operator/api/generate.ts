import { dump } from 'js-yaml';
import { admissionPolicies } from './admission-policies.ts';
import { crdOf, crds, type Schema } from './crd.ts';
import { ERROR_CODES } from './errors.ts';
import { EXIT, EXITS } from './exits.ts';
import { operatorFlow, tenantsFlow } from './flows.ts';
import { KINDS } from './kinds.ts';
import { generatedNotice, markdownCell, markdownPage as pageOf } from './markdown.ts';
import type { KubeObject } from './meta.ts';
import { type ConditionKind, type Explanation, REASONS } from './reasons.ts';
import { referencePage } from './reference.ts';
import {
  clusterRole,
  crdJobRules,
  gardenRules,
  ownNamespaceRules,
  roleFor,
  seedRules,
  tenantRoles,
  uninstallJobRules,
} from './roles.ts';
import { seedServices } from './seed-service-policy.ts';

/** Introduction for kinds that are not Coppice's. */
const OF_OTHERS: Partial<Record<ConditionKind, string>> = {
  CertificateSigningRequest: 'The operator answers such a request when somebody runs `coppice kubeconfig`.',
  ClusterProfile: 'The operator writes such an object for each member of a Hub of type ClusterProfile.',
  AdmissionCheck: 'The operator answers such a check of Kueue where a Hub of type Kueue is served by a BurstPolicy.',
  ManagedCluster: 'The operator writes such an object for each member of a Hub of type Clusternet.',
};

/** Messages that commands show for minutes when something hangs, and where to look. */
const MESSAGES: readonly (readonly [see: string, look: string])[] = [
  [
    '`waiting for the operator`',
    'The operator does not run or does not lead: `coppice status`, `coppice logs`; of a chart [CoppiceOperatorAbsent](../../tasks/alerts.md#coppiceoperatorabsent).',
  ],
  ['`Waiting for the first answer of seed NAME`', 'Conditions of the Seed: [NotReachable and others](seed.md).'],
  [
    '`Waiting for the API server`, `... for the control plane`',
    '`coppice describe NAME --show-conditions`, condition [ControlPlaneHealthy](shoot.md#controlplanehealthy): `ImageIsMade` (another Kubernetes is built: wait), `ImageCannotBeMade` (disk or network), `SeedFull`, `PodsCannotStart`. None of these: `df -h`, and the load of the machine.',
  ],
  [
    '`Waiting for nodes`, `... for machines`',
    'The same command, conditions [EveryNodeReady](shoot.md#everynodeready) and, in a cloud, [InfrastructureReady](workercluster.md#infrastructureready). `status.lastErrors` says what is sold out or over a quota.',
  ],
  ['`SIMULATED`', 'Nothing runs at a cloud: the cluster names no [credentials](../../tasks/clouds.md#credentials).'],
];

const section = (heading: string, { see, means, why, action }: Explanation): string =>
  [
    `### ${heading}`,
    '',
    '| | |',
    '|---|---|',
    `| you see | ${markdownCell(see)} |`,
    `| it means | ${markdownCell(means)} |`,
    `| because | ${markdownCell(why)} |`,
    `| to do | ${markdownCell(action)} |`,
  ].join('\n');

/** Page (Markdown) of a kind's conditions, from REASONS. */
function kindPage(kind: ConditionKind): string {
  const conditions = Object.entries(REASONS[kind] as Record<string, Record<string, Explanation>>);
  const { Ready, ...others } = Object.fromEntries(conditions);
  const placeOf = new Map<Explanation, string>();
  for (const [type, reasons] of Object.entries(others))
    for (const explanation of Object.values(reasons)) if (!placeOf.has(explanation)) placeOf.set(explanation, type);
  const told = new Set<Explanation>();
  const parts = [...(Ready ? [['Ready', Ready] as const] : []), ...Object.entries(others)].map(([type, reasons]) => {
    const own = Object.entries(reasons).filter(([, of]) => (type === 'Ready' ? !placeOf.has(of) : !told.has(of)));
    for (const [, explanation] of own) told.add(explanation);
    const isOwn = new Set(own.map(([reason]) => reason));
    const elsewhere = Object.entries(reasons)
      .filter(([reason]) => !isOwn.has(reason))
      .map(([reason, of]) => [reason, placeOf.get(of)!] as const)
      .map(([reason, at]) => `| \`${reason}\` | [${at}](#${anchor(at, reason)}) |`);
    return [
      `## ${type}`,
      ...own.map(([reason, explanation]) => section(`${type}: ${reason}`, explanation)),
      ...(elsewhere.length > 0 ? [['| reason | explained at |', '|---|---|', ...elsewhere].join('\n')] : []),
    ].join('\n\n');
  });
  return page(
    `Conditions of ${article(kind)} ${kind}`,
    OF_OTHERS[kind] ??
      `\`coppice describe\` and \`kubectl get -o yaml\` show these conditions. Each reason has what it asks of you. [All reasons](README.md). [Fields of ${article(kind)} ${kind}](../${fieldsPage(kind)}).`,
    ...parts,
  );
}

/** GitHub's anchor of a heading. */
const anchor = (type: string, reason: string): string => `${type}-${reason}`.toLowerCase();
const article = (word: string): string => (/^[AEIO]/.test(word) ? 'an' : 'a');
const fieldsPage = (kind: ConditionKind): string => `${KINDS.find((one) => one.kind === kind)!.plural}.md`;

/** Page of error codes and exit codes. */
const codesPage = (): string =>
  page(
    'Error codes and exit codes',
    "Conditions and `status.lastErrors` have Gardener's error codes in `codes`. Commands end with one of the exit codes.",
    '## Error codes',
    ...Object.entries(ERROR_CODES).map(([code, { see, means, why, advice, retryable }]) =>
      section(code, {
        see,
        means: `${means} ${retryable ? 'The operator retries soon.' : 'A retry helps only after a change.'}`,
        why,
        action: advice,
      }),
    ),
    '## Exit codes',
    ...Object.values(EXIT).map((code) => section(`Exit code ${code}`, EXITS[code])),
  );

function indexPage(): string {
  const kinds = Object.keys(REASONS) as ConditionKind[];
  const reasons = kinds.flatMap((kind) =>
    Object.entries(REASONS[kind] as Record<string, Record<string, Explanation>>).flatMap(([type, of]) =>
      Object.keys(of).map((reason) => ({ kind, type, reason })),
    ),
  );
  const byReason = [...Map.groupBy(reasons, ({ reason }) => reason)].sort(([a], [b]) => (a < b ? -1 : 1));
  const rows = byReason.map(([reason, of]) => {
    const pages = [...new Set(of.map(({ kind }) => kind))];
    return `| \`${reason}\` | ${pages.map((kind) => `[${kind}](${kind.toLowerCase()}.md)`).join(', ')} |`;
  });
  return page(
    'Troubleshooting',
    'Find the reason that a condition shows, and open the page of its kind. [Error codes and exit codes](codes.md) have a page of their own.',
    '## By what the screen shows',
    ['| you see | look at |', '|---|---|', ...MESSAGES.map((row) => `| ${row.join(' | ')} |`)].join('\n'),
    '## By reason',
    ['| reason | kinds |', '|---|---|', ...rows].join('\n'),
  );
}

const page = (title: string, ...parts: string[]): string => pageOf(generatedNotice('operator/api'), title, ...parts);

/** Pages of docs/reference/troubleshooting, by file name. */
const troubleshootingPages = (): Map<string, string> =>
  new Map([
    ['README.md', indexPage()],
    ['codes.md', codesPage()],
    ...(Object.keys(REASONS) as ConditionKind[]).map((kind) => [`${kind.toLowerCase()}.md`, kindPage(kind)] as const),
  ]);

const NOTICE = '# Generated from operator/api by `npm run generate`. Do not edit.\n';

const yaml = (...objects: unknown[]): string =>
  NOTICE + objects.map((object) => dump(object, { lineWidth: 120, noRefs: true })).join('---\n');

/** Every file that is generated from the kinds, by path from the root of the repository. */
export function generatedFiles(): Map<string, string> {
  const files = new Map<string, string>();
  const made = KINDS.map((definition) => ({ definition, object: crdOf(definition) }));
  const kinds = made
    .filter(({ definition }) => definition.spec)
    .map(({ definition, object }) => ({
      definition,
      spec: object.spec.versions[0].schema.openAPIV3Schema.properties.spec as Schema,
    }));
  for (const { definition, object } of made) {
    files.set(`charts/coppice/crds/${definition.plural}.yaml`, yaml(object));
    files.set(`docs/reference/${definition.plural}.md`, referencePage(definition, object, kinds));
  }
  for (const [name, text] of troubleshootingPages()) files.set(`docs/reference/troubleshooting/${name}`, text);
  for (const [name, objects] of admissionPolicies())
    files.set(`charts/coppice/templates/${name}.yaml`, yaml(...objects));
  const spared = '{{ toJson .Values.seed.externalIPs.allowedNamespaces }}';
  const services = yaml(...seedServices(spared));
  files.set('charts/coppice/templates/seed-services.yaml', `{{- if .Values.seed.inGarden }}\n${services}{{- end }}\n`);
  files.set('charts/coppice/templates/tenant-roles.yaml', yaml(...tenantRoles()));
  // Helm replaces the namespace.
  const serviceAccount = { name: 'coppice-operator', namespace: '{{ .Release.Namespace }}' };
  const flows = [...operatorFlow({ kind: 'ServiceAccount', serviceAccount }), ...tenantsFlow()];
  files.set('charts/coppice/templates/flows.yaml', yaml(...flows));
  files.set(
    'charts/coppice/templates/clusterroles.yaml',
    yaml(clusterRole('coppice-operator', gardenRules()), clusterRole('coppice-seed', seedRules())),
  );
  const { name, namespace } = serviceAccount;
  const account = { kind: 'ServiceAccount', ...serviceAccount };
  files.set('charts/coppice/templates/role.yaml', yaml(...roleFor(name, namespace, ownNamespaceRules(), account)));
  files.set(
    'charts/coppice/templates/jobs/clusterroles.yaml',
    yaml(
      ofJob(
        'coppice-crds',
        'pre-install,pre-upgrade,pre-rollback',
        crdJobRules(crds().map((one) => one.metadata.name)),
      ),
      ofJob('coppice-uninstall', 'pre-delete', uninstallJobRules()),
    ),
  );
  return files;
}

/** Rights of a Helm hook Job: created before the Job, deleted after its success. */
function ofJob(name: string, moments: string, rules: Parameters<typeof clusterRole>[1]): KubeObject {
  const role = clusterRole(name, rules);
  const annotations = {
    'helm.sh/hook': moments,
    'helm.sh/hook-weight': '-10',
    'helm.sh/hook-delete-policy': 'before-hook-creation,hook-succeeded',
  };
  return { ...role, metadata: { ...role.metadata, annotations } };
}
