import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { processMetrics, Registry } from '../../../operator/kube/metrics.ts';

const CHART = 'charts/coppice';
/** A metric and the labels that an expression chooses or groups by. */
const NAME = /\b(?:coppice|process|nodejs)_[a-z_]+\b/g;

/** Names in the source: instruments are asked for by them. name -> type. */
function definedMetrics(): Map<string, string> {
  const found = new Map<string, string>();
  const files = ['operator', 'providers'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join(folder, name)),
  );
  for (const file of files)
    for (const [, type, name] of readFileSync(file, 'utf8').matchAll(/\.(counter|gauge|histogram)\(\s*'([a-z_]+)'/g))
      found.set(name!, type!);
  return found;
}

/** Names as Prometheus has them. */
function seriesNames(): Set<string> {
  const names = [...definedMetrics()].flatMap(([name, type]) =>
    type === 'histogram' ? ['_bucket', '_sum', '_count'].map((end) => name + end) : [name],
  );
  return new Set(names);
}

interface Rule {
  alert: string;
  expr: string;
  annotations: Record<string, string>;
}
const rules = (
  load(readFileSync(`${CHART}/alerts/operator.yaml`, 'utf8')) as { groups: { rules: Rule[] }[] }
).groups.flatMap((group) => group.rules);
const dashboards = readdirSync(`${CHART}/dashboards`).map((name) => ({
  name,
  ...(JSON.parse(readFileSync(`${CHART}/dashboards/${name}`, 'utf8')) as {
    uid: string;
    panels: { id: number; title: string; targets: { expr: string }[] }[];
  }),
}));
const expressions: [what: string, expression: string][] = [
  ...rules.map(({ alert, expr }): [string, string] => [alert, expr]),
  ...dashboards.flatMap(({ name, panels }) =>
    panels.flatMap(({ title, targets }) => targets.map(({ expr }): [string, string] => [`${name}: ${title}`, expr])),
  ),
];

describe('alerts and dashboards', () => {
  it('ask for metrics that the operator has', async () => {
    const registry = new Registry();
    processMetrics(registry);
    // What is read from the source is what is served.
    expect(seriesNames()).toContain('nodejs_heap_used_bytes');
    expect(await registry.render()).toContain('nodejs_heap_used_bytes ');
    const served = seriesNames();
    const unknown = expressions.flatMap(([what, expression]) =>
      [...expression.matchAll(NAME)].filter(([name]) => !served.has(name)).map(([name]) => `${what}: ${name}`),
    );
    expect(unknown).toEqual([]);
    expect(expressions.every(([, expression]) => expression.match(NAME) || expression.includes('up{'))).toBe(true);
  });

  it('show or watch every metric that the operator has of its own', () => {
    const used = new Set(expressions.flatMap(([, expression]) => expression.match(NAME) ?? []));
    const unseen = [...definedMetrics().keys()].filter((name) => ![...used].some((one) => one.startsWith(name)));
    expect(unseen).toEqual([]);
  });

  it("choose the series of the chart's own Service, by balanced expressions", () => {
    for (const [what, expression] of expressions) {
      expect(expression, what).toContain('job="coppice-operator"');
      for (const [open, close] of ['()', '{}', '[]'])
        expect(expression.split(open!).length, `${what}: ${open}`).toBe(expression.split(close!).length);
    }
  });

  it('say in a sentence what is wrong, and in another what to look at', () => {
    for (const { alert, annotations } of rules) {
      expect(annotations.summary, alert).toMatch(/^[A-Z{].*\.$/);
      expect(annotations.description, alert).toMatch(/\.$/);
    }
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
  });

  it('number their panels', () => {
    for (const { name, panels } of dashboards)
      expect(new Set(panels.map(({ id }) => id)).size, name).toBe(panels.length);
  });
});
