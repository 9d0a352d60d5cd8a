import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { crds, type Schema, SchemaError, structuralSchema } from '../../../operator/api/crd.ts';
import { cidr, count, free, intOrString, list, map, PATTERNS, text } from '../../../operator/api/schema.ts';
import { staleFiles } from '../../../operator/cli/generate.ts';

test('committed CRDs, chart and reference pages match the schemas: else run `npm run generate`', async () => {
  expect(await staleFiles()).toEqual([]);
});

test.each<[string, z.ZodType, Schema]>([
  ['text', text(9, 'd'), { description: 'd', type: 'string', maxLength: 9 }],
  ['a small number', count(0, 5, 'd'), { description: 'd', type: 'integer', format: 'int32', minimum: 0, maximum: 5 }],
  ['a large number', count(0, undefined, 'd'), { description: 'd', type: 'integer', format: 'int64', minimum: 0 }],
  ['a choice of numbers', z.literal([1, 3]).describe('d'), { description: 'd', type: 'integer', enum: [1, 3] }],
  [
    'a number or text',
    intOrString('d'),
    { description: 'd', 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
  ],
  ['anything', free('d'), { description: 'd', type: 'object', 'x-kubernetes-preserve-unknown-fields': true }],
  [
    'a map',
    map(3, 'd'),
    { description: 'd', type: 'object', maxProperties: 3, additionalProperties: { type: 'string', maxLength: 4096 } },
  ],
  [
    'a range, without a format, which would let a list through,',
    cidr('d'),
    {
      description: 'd',
      type: 'string',
      minLength: 1,
      maxLength: 64,
      pattern: PATTERNS.cidr.source,
      'x-kubernetes-validations': [
        { rule: 'isCIDR(self)', message: 'must be an address range, for example 10.0.0.0/16' },
      ],
    },
  ],
  [
    'an object with a default',
    z.object({ a: z.boolean().default(true).describe('a') }).describe('d'),
    { description: 'd', type: 'object', properties: { a: { type: 'boolean', default: true, description: 'a' } } },
  ],
  [
    'a strict object',
    z.strictObject({ a: z.boolean().describe('a') }).describe('d'),
    { description: 'd', type: 'object', properties: { a: { type: 'boolean', description: 'a' } }, required: ['a'] },
  ],
])('%s becomes structural', (_, schema, expected) => {
  expect(structuralSchema(schema)).toEqual(expected);
});

test.each<[string, z.ZodType, RegExp]>([
  ['no description', z.boolean(), /has no description/],
  ['a union of objects', z.union([z.object({}), z.string()]).describe('d'), /anyOf/],
  ['text without a limit', z.string().describe('d'), /without maxLength/],
  ['a list without a limit', z.array(text(1, 'd')).describe('d'), /without maxItems/],
  ['a look-ahead', text(9, 'd', /^(?!x)/), /RE2/],
  [
    'a deep mistake',
    z.object({ a: list(z.object({ b: z.string() }).describe('d'), 1, 'd') }).describe('d'),
    /\.a\[\]\.b/,
  ],
])('%s is an error while generating', (_, schema, message) => {
  expect(() => structuralSchema(schema)).toThrow(message);
  expect(() => structuralSchema(schema)).toThrow(SchemaError);
});

describe('every CRD', () => {
  test.each(crds().map((crd) => [crd.metadata.name, crd] as const))('%s', (_, crd) => {
    const [version] = crd.spec.versions;
    expect(crd.spec.names.categories).toContain('coppice');
    expect(version.subresources.status).toEqual({});
    expect(version.additionalPrinterColumns.map((column: { name: string }) => column.name)).toContain('Ready');
    expect(version.schema.openAPIV3Schema.properties.status.properties).toHaveProperty('conditions');
    expect(version.schema.openAPIV3Schema.properties.status.properties).toHaveProperty('lastOperation');
  });
});
