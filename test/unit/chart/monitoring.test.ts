import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { processMetrics, Registry } from '../../../operator/kube/metrics.ts';

const CHART = 'charts/coppice';
/** A metric and the labels that an expression chooses or groups by. */
const NAME = /\b(?:coppice|process|nodejs)_[a-z_]+\b/g;

/** What Prometheus adds to each series: who was asked. */
const OF_TARGET = ['job', 'instance', 'namespace', 'pod', 'service', 'endpoint', 'container'];
const LABEL = /[a-z_]+/g;

interface Metric {
  type: string;
  labels: string[];
}

/** Instruments in the source, which are asked for by their names. */
function definedMetrics(): Map<string, Metric> {
  const found = new Map<string, Metric>();
  const files = ['operator', 'providers'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join(folder, name)),
  );
  for (const file of files) {
    const source = readFileSync(file, 'utf8');
    for (const [, type, name, rest] of source.matchAll(/\.(counter|gauge|histogram)\(\s*'([a-z_]+)',\s*([^;]*)/g)) {
      const [, given] =
        /^'[^']*',?\s*(?:(\[[^\]]*\]|[A-Z_]+)|\))/.exec(rest!) ?? expect.unreachable(`${name} in ${file}`);
      const labels = given?.startsWith('[') ? given : new RegExp(`const ${given} = (\\[[^\\]]*\\])`).exec(source)?.[1];
      if (given && !labels) expect.unreachable(`labels ${given} of ${name} in ${file}`);
      found.set(name!, { type: type!, labels: labels?.match(LABEL) ?? [] });
    }
  }
  return found;
}

/** Series as Prometheus has them, with the labels of each. */
function servedSeries(): Map<string, string[]> {
  const series = [...definedMetrics()].flatMap(([name, { type, labels }]): [string, string[]][] => {
    const all = [...labels, ...OF_TARGET];
    if (type !== 'histogram') return [[name, all]];
    return ['_bucket', '_sum', '_count'].map((end) => [name + end, end === '_bucket' ? [...all, 'le'] : all]);
  });
  return new Map([...series, ['up', OF_TARGET]]);
}

/** What is between the parenthesis at `open` and its own end. */
function inside(text: string, open: number): string {
  let depth = 0;
  for (let at = open; at < text.length; at++) {
    if (text[at] === '(') depth++;
    if (text[at] === ')' && --depth === 0) return text.slice(open + 1, at);
  }
  return expect.unreachable(`no end of ( in ${text}`);
}

/** Series that an expression asks for and labels that it takes these to have. */
function labelsAsked(expression: string): [series: string, label: string][] {
  const chosen = [...expression.matchAll(/\b([a-z_]+)\{([^}]*)\}/g)].flatMap(([, series, matchers]) =>
    [...matchers!.matchAll(/([a-z_]+)\s*(?:=~|!~|!=|=)/g)].map(([, label]): [string, string] => [series!, label!]),
  );
  const grouped = [...expression.matchAll(/\bby \(([^)]*)\)\s*(?=\()/g)].flatMap((by) => {
    const group = inside(expression, by.index + by[0].length);
    return (by[1]!.match(LABEL) ?? []).flatMap((label) =>
      (group.match(NAME) ?? []).map((series): [string, string] => [series, label]),
    );
  });
  return [...chosen, ...grouped];
}

/** Labels that what an expression results in has: those that it is grouped by, or that all of its series have. */
function labelsLeft(expression: string, served: ReadonlyMap<string, string[]>): string[] {
  const grouped = [...expression.matchAll(/\bby \(([^)]*)\)/g)].map(([, labels]) => labels!.match(LABEL) ?? []);
  const all = grouped.length > 0 ? grouped : (expression.match(NAME) ?? []).map((series) => served.get(series) ?? []);
  const consumed = expression.includes('histogram_quantile') ? ['le'] : [];
  return (all[0] ?? []).filter((label) => all.every((one) => one.includes(label)) && !consumed.includes(label));
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
    panels: { id: number; title: string; targets: { expr: string; legendFormat: string }[] }[];
  }),
}));
const expressions: [what: string, expression: string][] = [
  ...rules.map(({ alert, expr }): [string, string] => [alert, expr]),
  ...dashboards.flatMap(({ name, panels }) =>
    panels.flatMap(({ title, targets }) => targets.map(({ expr }): [string, string] => [`${name}: ${title}`, expr])),
  ),
];

describe('the alerts and dashboards of the chart', () => {
  it('refer to the section of docs/tasks/alerts.md with the advice', () => {
    const headings = [...readFileSync('docs/tasks/alerts.md', 'utf8').matchAll(/^## (\w+)$/gm)].map(([, name]) => name);
    expect(headings).toEqual(rules.map(({ alert }) => alert));
    for (const { alert, annotations } of rules)
      expect(annotations.runbook).toBe(`docs/tasks/alerts.md#${alert.toLowerCase()}`);
  });

  it('query metrics that the operator has', async () => {
    const registry = new Registry();
    processMetrics(registry);
    // What is read from the source is what is served.
    expect([...servedSeries().keys()]).toContain('nodejs_heap_used_bytes');
    expect(await registry.render()).toContain('nodejs_heap_used_bytes ');
    const served = servedSeries();
    const unknown = expressions.flatMap(([what, expression]) =>
      [...expression.matchAll(NAME)].filter(([name]) => !served.has(name)).map(([name]) => `${what}: ${name}`),
    );
    expect(unknown).toEqual([]);
    expect(expressions.every(([, expression]) => expression.match(NAME) || expression.includes('up{'))).toBe(true);
  });

  it('filter, group and show by labels that these metrics have', () => {
    const served = servedSeries();
    const asked = expressions.flatMap(([what, expression]) =>
      labelsAsked(expression).map(([series, label]) => ({ what, series, label })),
    );
    expect(asked.filter(({ series, label }) => !served.get(series)?.includes(label))).toEqual([]);
    expect(asked.map(({ label }) => label)).toEqual(
      expect.arrayContaining(['result', 'le', 'code', 'controller', 'job']),
    );
    const shown = [
      ...rules.map(({ alert, expr, annotations }): [string, string, RegExp, string] => [
        alert,
        expr,
        /\$labels\.([a-z_]+)/g,
        Object.values(annotations).join(' '),
      ]),
      ...dashboards.flatMap(({ panels }) =>
        panels.flatMap(({ title, targets }) =>
          targets.map(({ expr, legendFormat }): [string, string, RegExp, string] => [
            title,
            expr,
            /\{\{([a-z_]+)\}\}/g,
            legendFormat,
          ]),
        ),
      ),
    ];
    const missing = shown.flatMap(([what, expression, pattern, text]) =>
      [...text.matchAll(pattern)]
        .filter(([, label]) => !labelsLeft(expression, served).includes(label!))
        .map(([, label]) => `${what}: ${label}`),
    );
    expect(missing).toEqual([]);
    expect(shown.filter(([, , pattern, text]) => text.match(pattern)).length).toBeGreaterThan(20);
  });

  it("use every metric of the operator's own", () => {
    const used = new Set(expressions.flatMap(([, expression]) => expression.match(NAME) ?? []));
    const unseen = [...definedMetrics().keys()].filter((name) => ![...used].some((one) => one.startsWith(name)));
    expect(unseen).toEqual([]);
  });

  it("select the series of the chart's own Service, with balanced expressions", () => {
    for (const [what, expression] of expressions) {
      expect(expression, what).toContain('job="coppice-operator"');
      for (const [open, close] of ['()', '{}', '[]'])
        expect(expression.split(open!).length, `${what}: ${open}`).toBe(expression.split(close!).length);
    }
  });

  it('state the fault in one sentence and the place to look in another', () => {
    for (const { alert, annotations } of rules) {
      expect(annotations.summary, alert).toMatch(/^[A-Z{].*\.$/);
      expect(annotations.description, alert).toMatch(/\.$/);
    }
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
  });

  it("fire for a single failing object only of administrators' kinds, by controller name", () => {
    const { expr } = rules.find(({ alert }) => alert === 'CoppiceReconcilesFail')!;
    const named = /controller=~"([^"]*)"/.exec(expr)?.[1]?.split('|') ?? [];
    const known = readdirSync('operator/controllers', { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('wiring.ts'))
      .flatMap((file) => [...readFileSync(join('operator/controllers', file), 'utf8').matchAll(/\bname: '([a-z]+)'/g)])
      .map(([, name]) => name);
    expect(known).toEqual(expect.arrayContaining(named));
    expect(named).toEqual(['burst', 'cloudprofile', 'hub', 'seed']);
  });

  it('number their panels', () => {
    for (const { name, panels } of dashboards)
      expect(new Set(panels.map(({ id }) => id)).size, name).toBe(panels.length);
  });
});
