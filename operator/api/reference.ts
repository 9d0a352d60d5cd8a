import { apiVersionOf, type Schema } from './crd.ts';
import type { KubeObject } from './meta.ts';
import { type KindDefinition, PATTERNS, type Rule } from './schema.ts';

// Markdown takes <name> for a tag.
const prose = (text: string): string => text.replaceAll('<', '&lt;');
const cell = (text: string): string => prose(text).replaceAll('|', '\\|').replaceAll('\n', ' ');

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

function rows(schema: Schema, path: string): string[] {
  const required = new Set(schema.required);
  return Object.entries(schema.properties ?? {}).flatMap(([field, inner]) => {
    const here = path === '' ? field : `${path}.${field}`;
    const notes = [
      inner.description ?? '',
      required.has(field) ? '**Required.**' : '',
      inner.default !== undefined && typeof inner.default !== 'object'
        ? `Default: \`${JSON.stringify(inner.default)}\`.`
        : '',
    ].filter(Boolean);
    const row = `| \`${here}\` | ${cell(typeOf(inner))} | ${cell(notes.join(' '))} |`;
    return [row, ...rows(inner, here), ...(inner.items ? rows(inner.items, `${here}[]`) : [])];
  });
}

function messages(schema: Schema): string[] {
  const own = ((schema['x-kubernetes-validations'] as Rule[] | undefined) ?? []).map(
    (rule) => rule.message ?? rule.rule,
  );
  const inner = [...Object.values(schema.properties ?? {}), ...(schema.items ? [schema.items] : [])];
  return [...own, ...inner.flatMap(messages)];
}

const table = (schema: Schema, path: string): string =>
  ['| field | type | meaning |', '|---|---|---|', ...rows(schema, path)].join('\n');

function writtenFields(kind: KindDefinition, schema: Schema): string[] {
  if (kind.spec) return ['## spec', table(schema.properties!.spec!, 'spec')];
  const { apiVersion: _, kind: __, metadata: ___, status: ____, ...properties } = schema.properties!;
  return ['## fields', table({ properties, required: schema.required }, '')];
}

/** The reference page (Markdown) of a kind, from its CRD. */
export function referencePage(kind: KindDefinition, crd: KubeObject): string {
  const schema = crd.spec.versions[0].schema.openAPIV3Schema as Schema;
  const rules = [...new Set(messages(schema))];
  return [
    `<!-- Generated from operator/api by \`npm run generate\`. Do not edit. -->`,
    `# ${kind.kind}`,
    `\`apiVersion: ${apiVersionOf(kind)}\`, \`kind: ${kind.kind}\`, ${kind.scope === 'Namespaced' ? 'in a namespace' : 'cluster-wide'}; \`kubectl get ${[kind.plural, ...kind.shortNames].join('`, `')}\`.`,
    prose(kind.description),
    `[What its conditions mean, and what to do](troubleshooting/${kind.singular}.md).`,
    ...writtenFields(kind, schema),
    ...(rules.length > 0 ? ['## Refused at apply time', rules.map((message) => `- ${message}`).join('\n')] : []),
    '## status',
    table(schema.properties!.status!, 'status'),
    '',
  ]
    .join('\n\n')
    .replace(/\n+$/, '\n');
}
