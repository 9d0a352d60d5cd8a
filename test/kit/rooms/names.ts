import { resolved, textOf } from './files.ts';

/** An exported name. */
export interface Export {
  file: string;
  name: string;
  /** 1; an object that only gathers functions has one for each of its members. */
  weight: number;
  /** Whether another file defines the name, and this one only passes it on. */
  isPassedOn: boolean;
}

/** Text without comments: a name in a comment is no use of it. Strings that look like comments go too; no name is in those. */
export const withoutComments = (text: string): string =>
  text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '$1');

const DECLARED =
  /^export (?:declare )?(?:abstract )?(?:async )?(?:function\*?|const enum|const|let|class|interface|type(?! \{)|enum) (\w+|\{[^}]*\}|\[[^\]]*\])/gm;
const LISTED = /^export (?:type )?\{([^}]*)\}/gm;

/** Names of a list such as `a, type B, c as d`: as they are called where they come from. */
const listed = (list: string): string[] =>
  list
    .split(',')
    .map((item) => item.trim().replace(/^type /, ''))
    .filter((item) => item !== '')
    .map((item) => /^\w+/.exec(item)![0]);

/** How many functions an object gathers that has nothing else; 0 if it has something else, or is no object. */
function gathered(text: string, name: string): number {
  const body = new RegExp(`^export const ${name}(?:: [^=]*)? = \\{\\n([\\s\\S]*?)^\\}`, 'm').exec(text)?.[1];
  if (body === undefined) return 0;
  const members = body.match(/^ {2}[^\s}\])].*$/gm) ?? [];
  const functions = members.filter((line) =>
    /^ {2}(?:(?:async )?\w+\(|\w+,$|\w+: (?:async )?\(.*=>|\w+: function)/.test(line),
  );
  return functions.length === members.length ? members.length : 0;
}

/** What a file exports. */
export function exportsOf(file: string): Export[] {
  const text = withoutComments(textOf(file));
  const declared = [...text.matchAll(DECLARED)].flatMap(([, named]) =>
    named!.match(/^\w/) ? [named!] : listed(named!.slice(1, -1)),
  );
  const lists = [...text.matchAll(LISTED)].flatMap(([, list]) =>
    list!.split(',').flatMap((item) => /(\w+)\s*$/.exec(item)?.[1] ?? []),
  );
  // A function has one export for all of its signatures.
  const passedOn = new Set(lists.filter((name) => !declared.includes(name)));
  return [...new Set([...declared, ...lists])].map((name) => ({
    file,
    name,
    weight: Math.max(1, gathered(text, name)),
    isPassedOn: passedOn.has(name),
  }));
}

/** A name that a file takes from another. `undefined` stands for all that the other one exports. */
export interface Import {
  from: string;
  name: string | undefined;
}

const NAMED = /^(?:import|export) (?:type )?\{([^}]*)\} from '(\.[^']+)'/gm;
const WHOLE = /^import (?:type )?\* as \w+ from '(\.[^']+)'|\bimport\(\s*'(\.[^']+)'\s*\)|new URL\('(\.[^']+\.ts)'/gm;

/** What a file imports of ours by name. What is loaded lazily, or is started as a process, is imported whole. */
export function namesImported(file: string): Import[] {
  const text = withoutComments(textOf(file));
  return [
    ...[...text.matchAll(NAMED)].flatMap(([, list, from]) =>
      listed(list!).map((name) => ({ from: resolved(file, from!), name })),
    ),
    ...[...text.matchAll(WHOLE)].map(([, star, lazy, url]) => ({
      from: resolved(file, (star ?? lazy ?? url)!),
      name: undefined,
    })),
  ];
}
