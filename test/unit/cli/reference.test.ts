import { glob, readFile } from 'node:fs/promises';
import { load } from 'js-yaml';
import { expect, it } from 'vitest';
import { crdOf, type Schema } from '../../../operator/api/crd.ts';
import { generatedFiles } from '../../../operator/api/generate.ts';
import { KINDS } from '../../../operator/api/kinds.ts';
import { EXAMPLES, FIELD_ORDER } from '../../../operator/api/reference-examples.ts';
import { alertsPage, cliPage, labelsPage, metricsPage } from '../../../operator/cli/reference.ts';

const pageOf = (plural: string): string => generatedFiles().get(`docs/reference/${plural}.md`)!;
const fieldsOf = (page: string): string[] => [...page.matchAll(/^\| `([^`]+)`/gm)].map(([, field]) => field!);

it('a nested spec is linked, not repeated', () => {
  const page = pageOf('burstpolicies');
  expect(page).toContain('Its fields are those of [WorkerCluster](workerclusters.md#spec).');
  expect(fieldsOf(page).filter((field) => field.startsWith('spec.candidates[].template.spec.'))).toEqual([]);
});

it('fields stand in the order of their use', () => {
  const fields = fieldsOf(pageOf('workerclusters'));
  const at = ['spec.cloudProvider', 'spec.pools', 'spec.pools[].name', 'spec.hibernation', 'spec.adopt'].map((field) =>
    fields.indexOf(field),
  );
  expect(at).toEqual([...at].sort((a, b) => a - b));
  expect(at[0]).toBe(0);
});

it.each(KINDS.map((kind) => [kind.kind, kind] as const))(
  '%s has a minimal and a usual YAML, and orders fields that exist',
  (name, kind) => {
    const { minimal, usual } = EXAMPLES[name]!;
    for (const text of [minimal, usual]) expect(load(text)).toMatchObject({ kind: name });
    expect(minimal.length).toBeLessThan(usual.length);
    for (const [path, fields] of Object.entries(FIELD_ORDER[name] ?? {})) {
      const spec: Schema = crdOf(kind).spec.versions[0].schema.openAPIV3Schema.properties.spec;
      const at =
        path === '' ? spec : path.split('.').reduce((schema, field) => inside(schema.properties![field]!), spec);
      expect(Object.keys(at.properties ?? {})).toEqual(expect.arrayContaining([...fields]));
    }
  },
);

const inside = (schema: Schema): Schema => schema.items ?? schema;

it('shows for which clusters a field is acted on', () => {
  const page = pageOf('workerclusters');
  expect(page).toMatch(/^\| `spec\.pools\[\]\.spot` .*\| Hosted in a cloud, SelfManaged in a cloud, Managed \|$/m);
  expect(page).toMatch(/^\| `spec\.maintenance` .*\| no: stored only \|$/m);
});

it('lists every command, metric, alert, label and annotation', async () => {
  expect(cliPage()).toContain('## burst\n');
  expect(cliPage()).not.toContain('__complete');
  const metrics = await metricsPage('.');
  const named = new Set<string>();
  for await (const file of glob('operator/**/*.ts'))
    for (const [, name] of (await readFile(file, 'utf8')).matchAll(/'(coppice_[a-z_]+)'/g)) named.add(name!);
  expect([...named].filter((name) => !metrics.includes(`\`${name}\``))).toEqual([]);
  const alerts = await alertsPage('.');
  const used = new Set(
    [...alerts.matchAll(/coppice_[a-z_]+/g)].map(([name]) => name.replace(/_(bucket|sum|count)$/, '')),
  );
  expect(used.size).toBeGreaterThan(3);
  expect([...used].filter((name) => !metrics.includes(`\`${name}\``))).toEqual([]);
  const labels = await labelsPage('.');
  for (const key of ['burst-emptying', 'force-leave', 'do-not-disrupt'])
    expect(labels).toMatch(new RegExp(`${key}\` \\| \\S`));
});
