import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { PERMISSIONS } from '../../providers/index.ts';
import { ANNOTATIONS, LABELS, OTHERS_ANNOTATIONS } from '../api/group.ts';
import { KINDS } from '../api/kinds.ts';
import { markdownCell as cellOf, generatedNotice, markdownPage as pageOf, prose } from '../api/markdown.ts';
import type { CommandSpec, OptionSpec } from './command.ts';
import { COMMANDS, GLOBAL_OPTIONS } from './commands.ts';
import { positionalWords } from './parse.ts';

const BACK = '[Reference](README.md)';
const page = (title: string, ...parts: string[]): string => pageOf(generatedNotice(), title, ...parts, BACK);
const cell = (text: string): string => cellOf(text).trim();
const sentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;
const table = (header: readonly string[], rows: readonly (readonly string[])[]): string =>
  [header, header.map(() => '---'), ...rows]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n')
    .replaceAll('| --- ', '|---')
    .replaceAll('--- |', '---|');

/** docs/reference/cli.md, from the table of commands. */
export function cliPage(): string {
  const shown = COMMANDS.filter(({ hidden }) => !hidden);
  return page(
    'Commands',
    'All commands of `coppice`. [Exit codes](troubleshooting/codes.md#exit-codes) are the same for all of them.',
    table(
      ['command', 'what it does'],
      shown.map(({ name, summary }) => [`[${name}](#${name})`, cell(sentence(summary))]),
    ),
    '## Options of every command',
    optionsTable(GLOBAL_OPTIONS),
    ...shown.map(commandSection),
  );
}

function commandSection(command: CommandSpec): string {
  const { name, summary, description, options, examples } = command;
  const shown = options.filter(({ hidden }) => !hidden);
  return [
    `## ${name}`,
    `\`coppice ${[name, ...positionalWords(command)].join(' ')}\``,
    sentence(summary),
    ...(description ? [prose(description)] : []),
    ...(shown.length > 0 ? [optionsTable(shown)] : []),
    ...(examples ? [['```', ...examples, '```'].join('\n')] : []),
  ].join('\n\n');
}

const optionsTable = (options: readonly OptionSpec[]): string =>
  table(
    ['option', 'meaning'],
    options.map(({ name, short, value, summary, repeatable }) => {
      const flag = [short && `-${short}`, `--${name}`].filter(Boolean).join(', ');
      const more = repeatable && !summary.includes('more than once') ? ' May be given more than once.' : '';
      return [`\`${cell(value ? `${flag} ${value}` : flag)}\``, cell(`${sentence(summary)}${more}`)];
    }),
  );

const INSTRUMENT = /[.?]\s*(counter|gauge|histogram)\(\s*'(\w+)',\s*'([^']*)',\s*(\[[^\]]*\]|LABELS)?/g;

/** Metrics of the operator, with the source lines that create them. @param root of the repository */
async function instrumentsIn(root: string): Promise<{ name: string; type: string; help: string; labels: string[] }[]> {
  const found = new Map<string, { name: string; type: string; help: string; labels: string[] }>();
  for await (const file of glob('operator/**/*.ts', { cwd: root })) {
    const code = await readFile(join(root, file), 'utf8');
    const shared = /const LABELS = (\[[^\]]*\])/.exec(code)?.[1] ?? '[]';
    for (const [, type = '', name = '', help = '', labels = '[]'] of code.matchAll(INSTRUMENT)) {
      const list = labels === 'LABELS' ? shared : labels;
      found.set(name, { name, type, help, labels: [...list.matchAll(/'(\w+)'/g)].map(([, label]) => label!) });
    }
  }
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** docs/reference/metrics.md. @param root of the repository */
export async function metricsPage(root: string): Promise<string> {
  const instruments = await instrumentsIn(root);
  return page(
    'Metrics',
    'What the operator serves for Prometheus at `/metrics`. [Alerts](alerts.md) are made of these. A histogram has `_bucket`, `_sum` and `_count`.',
    table(
      ['metric', 'type', 'labels', 'meaning'],
      instruments.map(({ name, type, help, labels }) => [
        `\`${name}\``,
        type,
        labels.map((label) => `\`${label}\``).join(', ') || '-',
        cell(help),
      ]),
    ),
  );
}

/** docs/reference/README.md. */
export function indexPage(): string {
  const kinds = KINDS.map(({ kind, plural, singular, description }) => [
    `[${kind}](${plural}.md)`,
    `[conditions](troubleshooting/${singular}.md)`,
    cell(description.split(/(?<=\.) /)[0]!),
  ]);
  return pageOf(
    generatedNotice(),
    'Reference',
    'All of this is generated from the code. Fields of each kind, and what its conditions ask of you:',
    table(['kind', 'what to do', 'what it is'], kinds),
    [
      '- [Commands](cli.md)',
      '- [Reasons of conditions](troubleshooting/README.md), and [error and exit codes](troubleshooting/codes.md)',
      '- [Metrics](metrics.md) and [alerts](alerts.md)',
      '- [Labels and annotations](labels-and-annotations.md)',
      '- [Permissions in accounts of clouds](permissions.md)',
    ].join('\n'),
  );
}

/** docs/reference/permissions.md: policies with the permissions that the operator needs in an account. */
export function permissionsPage(): string {
  const json = (value: object): string => ['```json', JSON.stringify(value, null, 2), '```'].join('\n');
  const sorted = (names: readonly string[]): string[] => [...new Set(names)].sort();
  const policies: [string, (names: string[]) => object, Record<'managed' | 'onMachines', readonly string[]>][] = [
    [
      'AWS',
      (Action) => ({ Version: '2012-10-17', Statement: [{ Effect: 'Allow', Action, Resource: '*' }] }),
      PERMISSIONS.aws,
    ],
    [
      'Google Cloud',
      (includedPermissions) => ({ title: 'Coppice', stage: 'GA', includedPermissions }),
      PERMISSIONS.gcp,
    ],
    [
      'Azure',
      (Actions) => ({
        Name: 'Coppice',
        IsCustom: true,
        Actions,
        AssignableScopes: ['/subscriptions/SUBSCRIPTION'],
      }),
      PERMISSIONS.azure,
    ],
  ];
  return page(
    'Permissions in accounts of clouds',
    'What it takes to make, read, change and delete all that Coppice makes. The operator checks these permissions before it makes anything, and a condition names each one that is missing. For mode Hosted nothing is checked: it needs what concerns network and machines. `coppice sweep` looks for all that Coppice makes, and needs both lists of a cloud. [Roles to give](../tasks/clouds.md#credentials). Permissions for [buckets](../tasks/backups.md#what-is-in-the-bucket) and [DNS](../tasks/dns.md#rights) come in addition.',
    'Tests hold the lists against what our programs declare, and [stand-ins](../concepts/stand-ins.md) refuse what is in none. **No real account has seen these policies yet**: a cloud may ask for more, and its error names the permission. At AWS the first cluster of an account also needs `iam:CreateServiceLinkedRole`. The operator checks by `iam:SimulatePrincipalPolicy`. Without that right it works too, and AWS names what is missing when it refuses.',
    ...policies.flatMap(([cloud, policy, { managed, onMachines }]) => [
      `## ${cloud}: mode Managed`,
      json(policy(sorted(managed))),
      `## ${cloud}: modes SelfManaged and Hosted`,
      json(policy(sorted(onMachines))),
    ]),
  );
}

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly description: string; readonly runbook?: string };
}

/** docs/reference/alerts.md, from the rules of the chart. @param root of the repository */
export async function alertsPage(root: string): Promise<string> {
  const text = await readFile(join(root, 'charts/coppice/alerts/operator.yaml'), 'utf8');
  const { groups } = load(text) as { groups: { rules: Alert[] }[] };
  const alerts = groups.flatMap(({ rules }) => rules);
  return page(
    'Alerts',
    'Rules of the chart (`charts/coppice/alerts/operator.yaml`), made of [metrics](metrics.md). [What has no alert](../tasks/watch.md#what-has-no-alert).',
    ...alerts.map((one) =>
      [
        `## ${one.alert}`,
        plain(one.annotations.summary),
        plain(one.annotations.description),
        ...(one.annotations.runbook ? [`[What to do](../${one.annotations.runbook.replace(/^docs\//, '')}).`] : []),
        `Severity ${one.labels.severity}${one.for ? `, after ${one.for}` : ''}:`,
        ['```promql', one.expr.trim(), '```'].join('\n'),
      ].join('\n\n'),
    ),
  );
}

/** The text without Go templates, which only Prometheus can fill in. */
const plain = (text: string): string =>
  text
    .replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, '`$1`')
    .replaceAll(/\{\{ \$value[^}]*\}\}/g, 'N')
    .trim();

/** docs/reference/labels-and-annotations.md: keys with their docstrings. @param root of the repository */
export async function labelsPage(root: string): Promise<string> {
  const code = await readFile(join(root, 'operator/api/group.ts'), 'utf8');
  const rows = (of: string, keys: Readonly<Record<string, string>>): string => {
    const body = new RegExp(`export const ${of} = \\{([\\s\\S]*?)\\n\\} as const`).exec(code)?.[1] ?? '';
    let meaning = '';
    const found = [...body.matchAll(/\/\*\*([\s\S]*?)\*\/|^ {2}(\w+):/gm)].flatMap(([, comment, name]) => {
      if (comment !== undefined) meaning = comment.replaceAll(/\n \s*\* ?/g, ' ').trim();
      return name === undefined ? [] : [[`\`${keys[name]}\``, cell(meaning)]];
    });
    return table(['key', 'meaning'], found);
  };
  return page(
    'Labels and annotations',
    'Keys that Coppice sets or reads.',
    '## Labels',
    rows('LABELS', LABELS),
    '## Annotations',
    rows('ANNOTATIONS', ANNOTATIONS),
    '## Annotations of others',
    'Karpenter and Cluster Autoscaler have these, and Coppice obeys them.',
    rows('OTHERS_ANNOTATIONS', OTHERS_ANNOTATIONS),
  );
}
