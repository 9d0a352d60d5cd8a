import { existsSync, globSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { load, loadAll } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { crds, type Schema } from '../../../operator/api/crd.ts';
import { GROUP } from '../../../operator/api/group.ts';
import { COMMANDS, GLOBAL_OPTIONS } from '../../../operator/cli/commands.ts';
import { parse } from '../../../operator/cli/parse.ts';
import { commandsOf, type Page, pagesOf, readPage, readRepositoryFile, tableRows } from '../../kit/pages.ts';
import { proseOf } from '../../kit/sentences.ts';
import { manifestsIn, partOf } from '../../kit/yaml-of-pages.ts';

const PAGES = pagesOf('*.md', '{charts,docs,examples,operator,test}/**/*.md').map(readPage);
const BY_PATH = new Map(PAGES.map((page) => [page.path, page]));

/** What people read. Decisions keep their text, and what was seen is quoted: neither is held to names of today. */
const isHistory = (path: string): boolean => /^docs\/(decisions\/\d|seen\/)/.test(path);
const isDocs = (path: string): boolean =>
  path.startsWith('docs/') || path === 'README.md' || path === 'CONTRIBUTING.md';
const isCounted = (path: string): boolean => isDocs(path) && !/^docs\/(decisions|reference|seen)\//.test(path);

const CHECKS: Readonly<Record<string, (page: Page) => string[]>> = {
  links: brokenLinks,
  commands: wrongCommands,
  files: missingFiles,
  names: unknownNames,
  yaml: incompleteYaml,
  fields: unknownFields,
  tasks: unlikeATask,
  size: tooLarge,
  glossary: rejectedWords,
};

describe.each(Object.entries(CHECKS))('docs: check %s', (_, check) => {
  it.each(PAGES.map(({ path }) => path))('finds no fault in %s', (path) => {
    expect(check(BY_PATH.get(path)!)).toEqual([]);
  });
});

it('docs have 55,000 words at most, without reference, decisions and docs/seen', () => {
  const words = PAGES.filter(({ path }) => isCounted(path)).reduce((sum, page) => sum + page.words, 0);
  expect(words).toBeLessThanOrEqual(55_000);
});

it('docs: each page is linked from another page, or its folder is', () => {
  const linked = new Set(
    PAGES.flatMap((page) =>
      page.links
        .filter(({ target }) => !target.startsWith('#'))
        .map(({ target }) => normalize(join(dirname(page.path), target.split('#')[0]!)).replace(/\/$/, '')),
    ),
  );
  const pages = PAGES.map(({ path }) => path).filter((path) => path.startsWith('docs/'));
  expect(pages.filter((path) => !linked.has(path) && !linked.has(dirname(path)))).toEqual([]);
});

const EXAMPLES = globSync('examples/{*,getting-started/*}.yaml').filter(
  (path) => !path.endsWith('/demo-worker-cluster.yaml'),
);

it.each(EXAMPLES)('docs: example %s begins with what it shows, and its page uses it', (path) => {
  const [comment = ''] = /^(#.*\n)+/.exec(readRepositoryFile(path)) ?? [];
  const text = comment.replace(/\n# */g, ' ');
  expect(text).toMatch(/\bShows? /);
  const [, name = ''] = /\b(docs\/[\w/-]+\.md) uses it\./.exec(text) ?? [];
  expect(BY_PATH.get(name)?.text).toContain(path);
});

it('docs: pages and headings named in code and commands exist', () => {
  const files = globSync(['{bin,charts,operator,profiles,providers,examples,test}/**/*.{ts,yaml,yml,tpl,json}'])
    .filter((path) => !/^test\/(fixtures|unit\/house\/docs)/.test(path))
    .map((path) => [path, readRepositoryFile(path)] as const);
  const broken = files.flatMap(([path, text]) =>
    [...text.matchAll(/(?<![\w./-]|website |MicrosoftDocs\/entra-docs )docs\/([\w/-]+\.md)(?:#([\w-]+))?/g)]
      .filter(([, page, anchor]) => {
        const found = BY_PATH.get(`docs/${page}`);
        return !found || (anchor !== undefined && !found.anchors.has(anchor));
      })
      .map(([name]) => `${path}: ${name}`),
  );
  expect(broken).toEqual([]);
});

function brokenLinks(page: Page): string[] {
  return page.links.flatMap(({ target, text, line, picture }) => {
    if (picture && text === '' && !page.text.includes('alt="')) return [`${line}: ${target} has no text`];
    if (/^[a-z]+:/.test(target)) return [];
    const [file = '', anchor] = target.split('#');
    const path = file === '' ? page.path : normalize(join(dirname(page.path), decodeURI(file))).replace(/\/$/, '');
    if (!existsSync(path)) return [`${line}: ${target}: there is no ${path}`];
    if (anchor === undefined) return [];
    const there = BY_PATH.get(path)?.anchors;
    return there?.has(anchor) ? [] : [`${line}: ${target}: there is no #${anchor}`];
  });
}

const SCRIPTS = new Set(Object.keys((JSON.parse(readRepositoryFile('package.json')) as { scripts: object }).scripts));
const PROGRAMS = new Set(['coppice', 'bin/coppice', 'npm', 'npx', 'node']);
/** Of npm itself. */
const NPM = new Set(['ci', 'config', 'install', 'run', 'start', 'test']);
const TEST_FILES = globSync('test/**/*.ts');

function wrongCommands(page: Page): string[] {
  return commandsOf(page, PROGRAMS).flatMap(({ words, line, inText }) => {
    const problem = commandProblem(words, inText);
    return problem === undefined ? [] : [`${line}: ${words.join(' ')}: ${problem}`];
  });
}

/** @param named a command that a sentence names needs none of its arguments */
function commandProblem([program, ...args]: readonly string[], named: boolean): string | undefined {
  if (program === 'coppice' || program === 'bin/coppice') return coppiceProblem(args, named);
  const separator = args.indexOf('--');
  const own = separator < 0 ? args : args.slice(0, separator);
  const passed = separator < 0 ? [] : args.slice(separator + 1);
  if (program === 'npm') {
    const [verb, script] = own.filter((word) => !word.startsWith('-'));
    if (verb === undefined) return named ? undefined : 'it has no command';
    if (!NPM.has(verb)) return `npm ${verb} is not used here`;
    const name = verb === 'run' ? script : verb;
    if (!['ci', 'config', 'install'].includes(verb) && !SCRIPTS.has(name!)) return `package.json has no script ${name}`;
    if (name === 'start') return coppiceProblem(['start', ...passed], named);
    if (name === 'test:e2e' || name === 'test:hubs') return unknownTest(passed);
    return undefined;
  }
  if (own.includes('vitest')) return unknownTest(own.filter((word) => word !== 'vitest' && word !== 'run'));
  const rest = own.filter((word) => word !== 'node');
  const positionals = rest.filter((word, at) => !word.startsWith('-') && !/^-/.test(rest[at - 1] ?? ''));
  const files = positionals.filter((word) => /\//.test(word) && !/[A-Z]{3}|\$/.test(word));
  return files.filter((file) => !existsSync(file)).map((file) => `there is no ${file}`)[0];
}

const unknownTest = (args: readonly string[]): string | undefined =>
  args
    .filter((word, at) => !word.startsWith('-') && !/^-(t|-project)$/.test(args[at - 1] ?? ''))
    .filter((word) => !/[A-Z]{3}/.test(word) && !TEST_FILES.some((file) => file.includes(word)))
    .map((word) => `no test file is called ${word}`)[0];

function coppiceProblem(args: readonly string[], named: boolean): string | undefined {
  const read = (words: readonly string[]): string | undefined => {
    try {
      parse(words, COMMANDS, GLOBAL_OPTIONS);
      return undefined;
    } catch (error) {
      return (error as Error).message;
    }
  };
  // A whole number and a duration, where a page leaves the choice to its reader.
  const filled = args.map((word) => (word === 'N' || /^\$\w+$/.test(word) ? '1' : word === 'DURATION' ? '5m' : word));
  const problem = read(filled);
  if (problem === undefined || !named) return problem;
  return read([...filled, '--help']);
}

const TOP = new Set(['.ci', 'bin', 'charts', 'docs', 'examples', 'operator', 'profiles', 'providers', 'test']);
const FILES = globSync('{.ci,bin,charts,docs,examples,operator,profiles,providers,test}/**', {
  exclude: ['**/node_modules/**'],
});
const ALL_FILES = new Set([...FILES, ...globSync('*')]);

function missingFiles(page: Page): string[] {
  if (isHistory(page.path)) return [];
  return page.spans.flatMap(({ code, line }) =>
    braces(code)
      .filter((name) => /^[\w.@*-]+(\/[\w.@*-]+)*\/?$/.test(name))
      .filter((name) => TOP.has(name.split('/')[0]!) || (/\.ts$/.test(name) && name.includes('/')))
      .filter((name) => !isFile(name.replace(/\/$/, '')) && !isFile(normalize(join(dirname(page.path), name))))
      .map((name) => `${line}: there is no ${name}`),
  );
}

const isFile = (name: string): boolean =>
  ALL_FILES.has(name) ||
  (name.includes('*') && globSync(name).length > 0) ||
  (name.endsWith('.ts') && FILES.some((file) => file.endsWith(`/${name}`)));

/** `a/{b,c}.ts` is two names. */
function braces(text: string): string[] {
  const match = /^([^{}]*)\{([^{}]*)\}(.*)$/.exec(text);
  return match ? match[2]!.split(',').flatMap((part) => braces(`${match[1]}${part}${match[3]}`)) : [text];
}

const WORDS = new Set(
  globSync([
    '{operator,providers,profiles,examples,charts,test/kit,test/bench,test/fixtures}/**/*.{ts,yaml,tpl,json,csv,crd,sh}',
    'test/*.ts',
    'test/{unit,integration,e2e,hubs}/**/*.ts',
    'package.json',
    'bin/*',
  ])
    .filter((path) => path !== 'test/unit/house/docs.test.ts')
    .flatMap((path) => readRepositoryFile(path).match(/[A-Za-z_$][\w$]*/g) ?? []),
);
/** Of other programs, which our code never names. */
const NAMES_OF_OTHERS: readonly string[] = [
  ...['BestEffortFIFO', 'FailedScheduling', 'PriorityBasedScheduling', 'ResourceQuotaEstimate', 'EventedPLEG'],
  ...['StringEquals', 'SSL_ports'],
];
const OTHERS = new Set(NAMES_OF_OTHERS);

/** Names of fields, kinds, reasons, variables and codes have a capital within, or an underscore. Code of ours that lacks one no longer has it. */
function unknownNames(page: Page): string[] {
  if (isHistory(page.path)) return [];
  return page.spans
    .filter(({ code }) => /^\.?[A-Za-z_][\w.[\]/-]*$/.test(code) && !/\.\w{1,4}$/.test(code))
    .flatMap(({ code, line }) =>
      code
        .split(/[./[\]-]+/)
        .filter((word) => /^([a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*|[A-Z]+_\w+|coppice_\w+)$/.test(word))
        .filter((word) => !WORDS.has(word) && !OTHERS.has(word))
        .map((word) => `${line}: nothing is called ${word}`),
    );
}

const SCHEMAS = new Map(
  crds().map((crd) => {
    const { names, versions } = crd.spec as {
      names: { kind: string };
      versions: { schema: { openAPIV3Schema: Schema } }[];
    };
    return [names.kind, versions[0]!.schema.openAPIV3Schema];
  }),
);
const SPEC_FIELDS = new Set(
  [...SCHEMAS.values()].flatMap(({ properties }) => Object.keys(properties?.spec?.properties ?? {})),
);

/** Fields of our kinds: in manifests, in parts of manifests, and as paths in sentences. */
function unknownFields(page: Page): string[] {
  if (isHistory(page.path)) return [];
  const written = manifestsIn(page)
    .filter(({ object }) => object.apiVersion.startsWith(`${GROUP}/`))
    .flatMap(({ object, line }) => {
      const schema = SCHEMAS.get(object.kind);
      if (!schema) return [`${line}: there is no kind ${object.kind}`];
      const problem = unknownField(object, schema, '');
      return problem === undefined ? [] : [`${line}: ${problem} is no field`];
    });
  const named = page.spans
    .filter(({ code }) => /^[a-z]\w*(\[\]|\{\})?(\.[a-z]\w*(\[\]|\{\})?)+$/.test(code))
    .map(({ code, line }) => ({ path: code.replace(/\[\]|\{\}/g, '').split('.'), code, line }))
    .filter(({ path }) => path[0] === 'spec' || path[0] === 'status' || SPEC_FIELDS.has(path[0]!))
    .filter(({ path }) => !FIELDS_OF_OTHERS.has(path.join('.')) && !/\.(ts|md|ya?ml)$/.test(path.join('.')))
    .filter(({ path }) => {
      const full = path[0] === 'spec' || path[0] === 'status' ? path : ['spec', ...path];
      return (
        ![...SCHEMAS.values()].some((schema) => hasPath(schema, full) || hasPath(schema, path)) &&
        !hasValue(VALUES, path)
      );
    });
  return [...written, ...named.map(({ code, line }) => `${line}: ${code} is no field`)];
}

/** Of kinds of others, of their programs' settings, and rights in clouds. */
const FIELDS_OF_OTHERS = new Set([
  ...['spec.hostUsers', 'spec.priority', 'spec.service', 'spec.conversion.webhook.clientConfig.service'],
  ...['status.apiEnablements', 'spec.resourceModels', 'cluster.id', 'cluster.name', 'zones.include'],
  ...['dns.managedZones.list', 'dns.changes.create'],
]);

function unknownField(written: unknown, schema: Schema, path: string): string | undefined {
  if (schema['x-kubernetes-preserve-unknown-fields'] || typeof written !== 'object' || written === null)
    return undefined;
  for (const [key, value] of Object.entries(written)) {
    const inner = Array.isArray(written) ? schema.items : (schema.properties?.[key] ?? schema.additionalProperties);
    if (path === '' && key === 'metadata') continue;
    if (typeof inner !== 'object') return inner === true ? undefined : `${path}.${key}`.slice(1);
    const problem = unknownField(value, inner, `${path}.${key}`);
    if (problem) return problem;
  }
  return undefined;
}

function hasPath(schema: Schema | undefined, path: readonly string[]): boolean {
  if (!schema) return false;
  if (schema.items) return hasPath(schema.items, path);
  if (path.length === 0 || schema['x-kubernetes-preserve-unknown-fields']) return true;
  const [key, ...rest] = path;
  const inner =
    schema.properties?.[key!] ??
    (typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined);
  return hasPath(inner, rest);
}

/** A part of an object is dry-run within the object that it belongs to: a page that does not name it is tested by nobody. */
function incompleteYaml(page: Page): string[] {
  if (isHistory(page.path)) return [];
  return page.blocks
    .filter(({ language, code }) => language === 'yaml' || (language === '' && /^(apiVersion|kind|spec):/.test(code)))
    .flatMap(({ code, info, line }) => {
      const whole = partOf(info);
      const trees = (loadAll(code) as (Record<string, unknown> | null)[]).filter((tree) => tree !== null);
      if (whole === undefined)
        return trees
          .filter(({ apiVersion }) => apiVersion === undefined)
          .map(() => `${line}: say part-of=FILE after the fence`);
      if (!existsSync(whole)) return [`${line}: there is no ${whole}`];
      return whole.endsWith('values.yaml')
        ? trees
            .flatMap(leaves)
            .filter((path) => !hasValue(VALUES, path))
            .map((path) => `${line}: the chart has no ${path.join('.')}`)
        : [];
    });
}

/** Paths of all fields of values; maps that are empty by default take any key. */
const leaves = (tree: object): string[][] =>
  Object.entries(tree).flatMap(([key, value]: [string, unknown]) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? leaves(value).map((path) => [key, ...path])
      : [[key]],
  );

const VALUES = load(readRepositoryFile('charts/coppice/values.yaml'));

const hasValue = (values: unknown, [key, ...rest]: readonly string[]): boolean =>
  key === undefined ||
  (typeof values === 'object' && values !== null && Object.keys(values).length === 0) ||
  (typeof values === 'object' &&
    values !== null &&
    key in values &&
    hasValue((values as Record<string, unknown>)[key], rest));

function tooLarge({ path, bytes, text }: Page): string[] {
  if (!isDocs(path) || /^docs\/(reference|seen)\//.test(path)) return [];
  const most = path === 'README.md' ? 7 : path.startsWith('docs/tasks/') ? 8 : 20;
  const lines = text.split('\n').length - 1;
  return [
    ...(bytes > most * 1000 ? [`${bytes} bytes, ${most} kB at most`] : []),
    ...(path === 'README.md' && lines > 110 ? [`${lines} lines, 110 at most`] : []),
  ];
}

/** A task begins with what its reader gets and needs; steps follow. */
function unlikeATask({ path, text }: Page): string[] {
  if (!path.startsWith('docs/tasks/')) return [];
  const [, opening = ''] = /^# .+\n\n([\s\S]*?)(?=\n## |$)/.exec(text) ?? [];
  return ['You\\s+get', 'You\\s+need|This\\s+needs'].filter((words) => !new RegExp(words).test(opening));
}

const REJECTED = tableRows(readRepositoryFile('docs/glossary.md'), 'not').flatMap(({ term, not }) =>
  not!
    .split(', ')
    .filter(Boolean)
    .map((word) => ({ term: term!, word, pattern: new RegExp(`(?<![\\w-])${word}(?![\\w-])`, 'i') })),
);

function rejectedWords({ path, text }: Page): string[] {
  if (!isDocs(path) || isHistory(path) || path === 'docs/glossary.md') return [];
  return proseOf(text).flatMap((part) =>
    REJECTED.filter(({ pattern }) => pattern.test(part)).map(
      ({ term, word }) => `"${word}" is ${term}: ${part.slice(0, 80)}`,
    ),
  );
}
