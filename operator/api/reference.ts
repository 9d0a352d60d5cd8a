import type { ActedFields } from './acted.ts';
import { apiVersionOf, type Schema } from './crd.ts';
import { generatedNotice, markdownCell, prose } from './markdown.ts';
import type { KubeObject } from './meta.ts';
import { EXAMPLES, FIELD_ORDER } from './reference-examples.ts';
import { type KindDefinition, PATTERNS, type Rule } from './schema.ts';
import { ACTED_BY_SEEDS } from './seed.ts';
import { ACTED_BY_SHOOTS } from './shoot.ts';
import { ACTED_BY_MODES } from './workercluster.ts';

/**
 * Fields that the operator acts on, by kind and variant of the object. Kinds that are not listed have no inert fields.
 */
const ACTED_BY_KIND: Readonly<Record<string, Readonly<Record<string, ActedFields>>>> = {
  WorkerCluster: ACTED_BY_MODES,
  Shoot: ACTED_BY_SHOOTS,
  Seed: ACTED_BY_SEEDS,
};

/** Whether the reference page of a kind has a column for fields without effect. */
const keepsFields = (kind: string): boolean => kind in ACTED_BY_KIND;

/** Text for people: whether, and for which objects, the operator acts on a field. @param path below spec, without [] */
function actedOn(kind: string, path: string): string {
  const variants = Object.entries(ACTED_BY_KIND[kind] ?? {});
  const names = path.split('.');
  const [acting, keeping] = [true, false].map((is) =>
    variants.filter(([, acted]) => isActedOn(acted, names) === is).map(([name]) => name),
  ) as [string[], string[]];
  if (acting.length === 0) return 'no: stored only';
  if (keeping.length === 0) return 'yes';
  return keeping.length < acting.length ? `all but ${keeping.join(', ')}` : acting.join(', ');
}

function isActedOn(acted: ActedFields, names: readonly string[]): boolean {
  let rule: true | ActedFields | undefined = acted;
  for (const name of names) {
    if (rule === true) return true;
    rule = rule?.[name];
  }
  return rule === true || (rule !== undefined && Object.keys(rule).length > 0);
}

function typeOf(schema: Schema): string {
  if (schema['x-kubernetes-int-or-string']) return 'integer or string';
  if (schema['x-kubernetes-preserve-unknown-fields']) return 'any object';
  if (schema.enum) return schema.enum.map((value) => `\`${String(value)}\``).join(', ');
  if (schema.items) return `list of ${typeOf(schema.items)}`;
  if (typeof schema.additionalProperties === 'object') return `map to ${typeOf(schema.additionalProperties)}`;
  const limits = [
    schema.minimum !== undefined && schema.minimum !== 0 ? `from ${schema.minimum}` : '',
    schema.maximum !== undefined ? `up to ${schema.maximum}` : '',
  ].filter(Boolean);
  if (schema.pattern === PATTERNS.cidr.source) return 'cidr';
  const type = schema.format && !schema.format.startsWith('int') ? schema.format : (schema.type ?? 'any');
  return [type, ...limits].join(' ');
}

/** Context of a reference page's rows. */
interface RowContext {
  readonly kind: string;
  /** Specs of other kinds, which nested fields link to. */
  readonly others: readonly KindSpec[];
  /** Whether rows say which fields have an effect. */
  readonly isActed: boolean;
}

/** Path below spec, without list markers. */
const belowSpec = (path: string): string => path.replaceAll('[]', '').replace(/^spec\.?/, '');

function inOrderOfUse({ properties = {} }: Schema, path: string, { kind }: RowContext): [string, Schema][] {
  const order = FIELD_ORDER[kind]?.[belowSpec(path)] ?? [];
  const rank = (field: string): number => (order.includes(field) ? order.indexOf(field) : order.length);
  return Object.entries(properties).sort(([a], [b]) => rank(a) - rank(b));
}

/** Kind with this spec. */
function kindOfSpec({ properties = {} }: Schema, { others }: RowContext): KindDefinition | undefined {
  const fields = Object.keys(properties).sort().join();
  return others.find(
    ({ spec }) =>
      Object.keys(spec.properties ?? {})
        .sort()
        .join() === fields,
  )?.definition;
}

function rows(schema: Schema, path: string, context: RowContext): string[] {
  const required = new Set(schema.required);
  return inOrderOfUse(schema, path, context).flatMap(([field, inner]) => {
    const here = path === '' ? field : `${path}.${field}`;
    const same = kindOfSpec(inner.items ?? inner, context);
    const notes = [
      markdownCell(inner.description ?? ''),
      required.has(field) ? '**Required.**' : '',
      inner.default !== undefined && typeof inner.default !== 'object'
        ? markdownCell(`Default: \`${JSON.stringify(inner.default)}\`.`)
        : '',
      same ? `Its fields are those of [${same.kind}](${same.plural}.md#spec).` : '',
    ].filter(Boolean);
    const acted = context.isActed ? ` ${actedOn(context.kind, belowSpec(here))} |` : '';
    const row = `| \`${here}\` | ${markdownCell(typeOf(inner))} | ${notes.join(' ')} |${acted}`;
    if (same) return [row];
    return [row, ...rows(inner, here, context), ...(inner.items ? rows(inner.items, `${here}[]`, context) : [])];
  });
}

function messages(schema: Schema): string[] {
  const own = ((schema['x-kubernetes-validations'] as Rule[] | undefined) ?? []).map(
    (rule) => rule.message ?? rule.rule,
  );
  const inner = [...Object.values(schema.properties ?? {}), ...(schema.items ? [schema.items] : [])];
  return [...own, ...inner.flatMap(messages)];
}

function table(schema: Schema, path: string, context: RowContext): string {
  const header = context.isActed
    ? ['| field | type | meaning | acted on |', '|---|---|---|---|']
    : ['| field | type | meaning |', '|---|---|---|'];
  return [...header, ...rows(schema, path, context)].join('\n');
}

function writtenFields(kind: KindDefinition, schema: Schema, context: RowContext): string[] {
  if (kind.spec) return ['## spec', table(schema.properties!.spec!, 'spec', context)];
  const { apiVersion: _, kind: __, metadata: ___, status: ____, ...properties } = schema.properties!;
  return ['## fields', table({ properties, required: schema.required }, '', context)];
}

const yamlBlock = (text: string): string => ['```yaml', text, '```'].join('\n');

/** Minimal and usual YAML. */
function examplesOf({ kind }: KindDefinition): string[] {
  const { minimal, usual } = EXAMPLES[kind]!;
  return ['Minimal:', yamlBlock(minimal), 'Usual:', yamlBlock(usual)];
}

/** Explains the last column, or that it is missing. */
const actedNote = ({ kind }: KindDefinition): string =>
  keepsFields(kind)
    ? 'The last column says for which of these objects the operator acts on a field. The others store it without effect, and a condition names it.'
    : 'The operator acts on all of these fields, but those that say otherwise.';

/** A kind with the schema of its spec. */
interface KindSpec {
  readonly definition: KindDefinition;
  readonly spec: Schema;
}

/** Reference page (Markdown) of a kind, from its CRD. @param kinds all kinds with a spec */
export function referencePage(kind: KindDefinition, crd: KubeObject, kinds: readonly KindSpec[]): string {
  const schema = crd.spec.versions[0].schema.openAPIV3Schema as Schema;
  const others = kinds.filter(({ definition }) => definition !== kind);
  const context: RowContext = { kind: kind.kind, others, isActed: keepsFields(kind.kind) };
  const rules = [...new Set(messages(schema))];
  return [
    generatedNotice('operator/api'),
    `# ${kind.kind}`,
    `\`apiVersion: ${apiVersionOf(kind)}\`, \`kind: ${kind.kind}\`, ${kind.scope === 'Namespaced' ? 'in a namespace' : 'cluster-wide'}; \`kubectl get ${[kind.plural, ...kind.shortNames].join('`, `')}\`.`,
    prose(kind.description),
    `[What its conditions mean, and what to do](troubleshooting/${kind.singular}.md).`,
    ...examplesOf(kind),
    actedNote(kind),
    ...writtenFields(kind, schema, context),
    ...(rules.length > 0 ? ['## Refused at apply time', rules.map((message) => `- ${message}`).join('\n')] : []),
    '## status',
    table(schema.properties!.status!, 'status', { ...context, isActed: false }),
    '',
  ]
    .join('\n\n')
    .replace(/\n+$/, '\n');
}
