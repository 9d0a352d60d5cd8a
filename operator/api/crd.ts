import { z } from 'zod';
import { GROUP, VERSION } from './group.ts';
import { KINDS } from './kinds.ts';
import type { KubeObject } from './meta.ts';
import { FORM_IN_WORDS, type KindDefinition, PATTERNS, WITHOUT_RULES } from './schema.ts';

/** A JSON schema node as an API server accepts it. */
export interface Schema {
  type?: string;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  format?: string;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  additionalProperties?: Schema | boolean;
  anyOf?: Schema[];
  [keyword: string]: unknown;
}

const INT32 = 2 ** 31;
// Keywords of zod's output that a structural schema forbids or ignores.
const UNKNOWN_KEYWORDS = [
  '$schema',
  'readOnly',
  'propertyNames',
  'uniqueItems',
  'exclusiveMinimum',
  'exclusiveMaximum',
];
const FORBIDDEN_KEYWORDS = ['$ref', 'oneOf', 'allOf', 'not', 'anyOf', 'definitions', '$defs'];

/** Thrown during generation: a CRD cannot express the zod schema. */
export class SchemaError extends Error {
  override readonly name = 'SchemaError';
}

/** Structural schema of a zod schema. Throws SchemaError with the path. */
export function structuralSchema(schema: z.ZodType, path = ''): Schema {
  const json = z.toJSONSchema(schema, {
    target: 'openapi-3.0',
    io: 'input',
    reused: 'inline',
    cycles: 'throw',
    unrepresentable: 'throw',
  });
  return structure(json as Schema, path);
}

function structure(from: Schema, path: string, outerRules = true): Schema {
  const to: Schema = { ...from };
  const rules = outerRules && !to[WITHOUT_RULES];
  delete to[WITHOUT_RULES];
  // Without rules, only the pattern checks the form.
  if (to[FORM_IN_WORDS] && rules) delete to.pattern;
  delete to[FORM_IN_WORDS];
  if (!rules) delete to['x-kubernetes-validations'];
  for (const keyword of UNKNOWN_KEYWORDS) delete to[keyword];
  if (!to.description) throw new SchemaError(`${path}: has no description, so kubectl explain would say nothing`);

  if (to['x-kubernetes-int-or-string']) {
    delete to.type;
    to.anyOf = [{ type: 'integer' }, { type: 'string' }];
    return to;
  }
  if (to['x-kubernetes-preserve-unknown-fields']) {
    delete to.additionalProperties;
    to.type = 'object';
  }
  for (const keyword of FORBIDDEN_KEYWORDS) {
    if (keyword in to) throw new SchemaError(`${path}: ${keyword} is not possible in a structural schema`);
  }
  if (to.additionalProperties === false) delete to.additionalProperties;
  if (!to.type) throw new SchemaError(`${path}: has no type`);
  if (to.pattern && /\(\?[=!<]/.test(to.pattern)) throw new SchemaError(`${path}: RE2 knows no ${to.pattern}`);
  if (to.enum?.every(Number.isInteger)) to.type = 'integer';
  if (to.type === 'integer') bound(to);
  if (to.type === 'string' && to.maxLength === undefined && !to.enum && to.format !== 'date-time') {
    throw new SchemaError(`${path}: text without maxLength`);
  }
  if (to.type === 'array' && to.maxItems === undefined) throw new SchemaError(`${path}: list without maxItems`);
  if (to.items) to.items = structure(to.items, `${path}[]`, rules);
  if (to.properties) {
    to.properties = Object.fromEntries(
      Object.entries(to.properties).map(([field, inner]) => [field, structure(inner, `${path}.${field}`, rules)]),
    );
  }
  if (typeof to.additionalProperties === 'object') {
    // The description of the map explains its values.
    to.additionalProperties = structure({ description: '-', ...to.additionalProperties }, `${path}{}`, rules);
    if (to.additionalProperties.description === '-') delete to.additionalProperties.description;
  }
  return to;
}

function bound(to: Schema): void {
  if (to.minimum !== undefined && to.minimum <= Number.MIN_SAFE_INTEGER) delete to.minimum;
  if (to.maximum !== undefined && to.maximum >= Number.MAX_SAFE_INTEGER) delete to.maximum;
  if (to.enum) return;
  const small = to.minimum !== undefined && to.maximum !== undefined && to.minimum >= -INT32 && to.maximum < INT32;
  to.format = small ? 'int32' : 'int64';
}

const metadata = (kind: KindDefinition): Schema =>
  kind.maxNameLength === undefined
    ? { type: 'object' }
    : {
        type: 'object',
        properties: { name: { type: 'string', maxLength: kind.maxNameLength, pattern: PATTERNS.label.source } },
      };

/** Schema of what people write: a spec, or the fields of a kind without a spec. */
function fieldsOf(kind: KindDefinition): Schema {
  if (kind.fields) return structuralSchema(kind.fields);
  if (!kind.spec) throw new SchemaError(`${kind.kind}: has neither spec nor fields`);
  return {
    properties: { spec: structuralSchema(kind.spec, 'spec') },
    required: ['spec'],
    'x-kubernetes-validations': kind.rules,
  };
}

/** `apiVersion` of the objects of a kind. */
export const apiVersionOf = ({ version = VERSION }: Pick<KindDefinition, 'version'>): string => `${GROUP}/${version}`;

/** The CustomResourceDefinition of one kind. */
export function crdOf(kind: KindDefinition): KubeObject {
  const { properties, required, 'x-kubernetes-validations': rules } = fieldsOf(kind);
  const schema: Schema = {
    description: kind.description,
    type: 'object',
    ...(required && { required }),
    properties: {
      apiVersion: { type: 'string', description: apiVersionOf(kind) },
      kind: { type: 'string', description: kind.kind },
      metadata: metadata(kind),
      ...properties,
      // Without this default, tools that wait for an object (kstatus, Flux, Argo CD) take an object without status for
      // done.
      status: { ...structuralSchema(kind.status, 'status'), default: { observedGeneration: -1 } },
    },
    ...(rules ? { 'x-kubernetes-validations': rules } : {}),
  };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${kind.plural}.${GROUP}` },
    spec: {
      group: GROUP,
      names: {
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        plural: kind.plural,
        singular: kind.singular,
        ...(kind.shortNames.length > 0 ? { shortNames: kind.shortNames } : {}),
        categories: kind.categories,
      },
      scope: kind.scope,
      versions: [
        {
          name: kind.version ?? VERSION,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: schema },
          subresources: { status: {}, ...(kind.scale ? { scale: kind.scale } : {}) },
          additionalPrinterColumns: kind.printerColumns,
        },
      ],
    },
  };
}

/** The CustomResourceDefinitions of all kinds. */
export const crds = (): KubeObject[] => KINDS.map(crdOf);
