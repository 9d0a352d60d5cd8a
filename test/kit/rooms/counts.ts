import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { filesIn, importsOf, MAY_IMPORT, ROOT, roomOf, textOf } from './files.ts';
import { type Export, exportsOf, type Import, namesImported, withoutComments } from './names.ts';

/** What is counted of a room. */
export interface RoomCounts {
  lines: number;
  files: number;
  exports: number;
  /** Names of the room that files of other rooms import. */
  knownOutside: number;
  /** Files of the room that files of other rooms import. */
  face: number;
  /** Exports that no other product file imports, but a test. */
  forTests: string[];
  /** Exports that no other file imports. */
  forNobody: string[];
  /** Files of more than 500 lines. */
  long: string[];
  /** Files of 60 lines at most with one importer, which imports them when it is loaded. */
  small: string[];
  /** Functions with five parameters or more, by place. */
  manyParameters: string[];
}

/** What is counted of the whole repository. */
export interface Shape {
  rooms: Record<string, RoomCounts>;
  /** Exported names with more than one definition, and their files. */
  defined: Map<string, string[]>;
  /** Exported functions of one word, by place. */
  oneWord: string[];
  /** `as unknown as` in tests. */
  casts: number;
  /** Optional members of the provider contract, and all. */
  contract: { optional: number; members: number };
  lines: { product: number; tests: number; kit: number };
  /** Files of product, also those in no room. */
  files: number;
}

const LONG = 500;
const SMALL = 60;

const linesOf = (file: string): number => textOf(file).split('\n').length - 1;
const sum = (files: readonly string[]): number => files.reduce((total, file) => total + linesOf(file), 0);

/** Functions with five parameters or more, as oxlint counts them: {file: [where, ...]}. */
function manyParameters(): Map<string, string[]> {
  const config = join(ROOT, 'test/kit/rooms/many-parameters.json');
  const { stdout } = spawnSync('npx', ['oxlint', '-c', config, '-f', 'json', 'operator', 'providers'], {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  });
  const { diagnostics } = JSON.parse(stdout) as {
    diagnostics: { filename: string; labels: { span: { line: number } }[] }[];
  };
  const found = new Map<string, string[]>();
  for (const { filename, labels } of diagnostics)
    found.set(filename, [...(found.get(filename) ?? []), `${filename}:${labels[0]!.span.line}`]);
  return found;
}

/** Who imports what: {file: {name: importing files}}. A name that a lazy import does not say is any word of the importing file. */
function usesOf(exported: Map<string, Export[]>, importing: readonly string[]): Map<string, Map<string, Set<string>>> {
  const uses = new Map<string, Map<string, Set<string>>>();
  const add = ({ from, name }: Import & { name: string }, by: string) => {
    const names = uses.get(from) ?? new Map<string, Set<string>>();
    uses.set(from, names.set(name, (names.get(name) ?? new Set()).add(by)));
  };
  for (const by of importing)
    for (const { from, name } of namesImported(by)) {
      if (name !== undefined) add({ from, name }, by);
      else {
        const words = new Set(withoutComments(textOf(by)).match(/\w+/g));
        for (const each of exported.get(from) ?? []) if (words.has(each.name)) add({ from, name: each.name }, by);
      }
    }
  return uses;
}

/** Files that are loaded lazily, or begin a process. */
const entered = (files: readonly string[]): Set<string> =>
  new Set(files.flatMap((file) => namesImported(file).flatMap(({ from, name }) => (name === undefined ? [from] : []))));

/** Members of an interface of a file: all, and how many are optional. */
function membersOf(file: string, name: string): { optional: number; members: number } {
  const body = new RegExp(`^export interface ${name} \\{\\n([\\s\\S]*?)^\\}`, 'm').exec(
    withoutComments(textOf(file)),
  )?.[1];
  const members = body?.match(/^ {2}(?:readonly )?\w+\??[(:<]/gm) ?? [];
  return { members: members.length, optional: members.filter((member) => member.includes('?')).length };
}

/** Counts names, files and lines of the repository as it is. */
export function countShape(): Shape {
  const product = ['operator', 'providers'].flatMap(filesIn);
  const beside = ['profiles', 'examples'].flatMap(filesIn);
  const tests = filesIn('test');
  const exported = new Map(product.map((file) => [file, exportsOf(file)]));
  const uses = usesOf(exported, [...product, ...beside]);
  const usesOfTests = usesOf(exported, tests);
  const importers = new Map<string, Set<string>>();
  for (const file of product)
    for (const target of importsOf(file)) importers.set(target, (importers.get(target) ?? new Set()).add(file));
  const entries = entered(product);
  const parameters = manyParameters();

  const countsOf = (files: readonly string[]): RoomCounts => {
    const all = files.flatMap((file) => exported.get(file)!);
    const by = ({ file, name }: Export) => [...(uses.get(file)?.get(name) ?? [])];
    const unused = all.filter((each) => by(each).length === 0);
    const inTests = ({ file, name }: Export) => (usesOfTests.get(file)?.get(name)?.size ?? 0) > 0;
    const isKnownOutside = (each: Export) => by(each).some((file) => roomOf(file) !== roomOf(each.file));
    const weigh = (some: readonly Export[]) => some.reduce((total, { weight }) => total + weight, 0);
    const place = ({ file, name }: Export) => `${file}: ${name}`;
    return {
      lines: sum(files),
      files: files.length,
      exports: weigh(all),
      knownOutside: weigh(all.filter(isKnownOutside)),
      face: new Set(all.filter(isKnownOutside).map(({ file }) => file)).size,
      forTests: unused.filter(inTests).map(place),
      forNobody: unused.filter((each) => !inTests(each)).map(place),
      long: files.filter((file) => linesOf(file) > LONG),
      small: files.filter(
        (file) => linesOf(file) <= SMALL && !entries.has(file) && (importers.get(file)?.size ?? 0) === 1,
      ),
      manyParameters: files.flatMap((file) => parameters.get(file) ?? []),
    };
  };

  const defined = new Map<string, string[]>();
  for (const { file, name, isPassedOn } of [...exported.values()].flat())
    if (!isPassedOn) defined.set(name, [...(defined.get(name) ?? []), file]);
  return {
    rooms: Object.fromEntries(
      Object.keys(MAY_IMPORT).map((room) => [room, countsOf(product.filter((file) => roomOf(file) === room))]),
    ),
    defined: new Map([...defined].filter(([, files]) => files.length > 1)),
    oneWord: product.flatMap((file) =>
      [
        ...textOf(file).matchAll(/^export (?:async )?function\*? ([a-z]+)\b|^export const ([a-z]+) =.*(?:=>|\()$/gm),
      ].map(([, named, held]) => `${file}: ${named ?? held}`),
    ),
    casts: tests.reduce((total, file) => total + (textOf(file).match(/\bas unknown as\b/g)?.length ?? 0), 0),
    contract: membersOf('providers/contract.ts', 'Provider'),
    files: product.length,
    lines: { product: sum(product), tests: sum(tests), kit: sum(filesIn('test/kit')) },
  };
}
