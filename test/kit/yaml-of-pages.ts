import { loadAll } from 'js-yaml';
import type { KubeObject } from '../../operator/api/meta.ts';
import { type Page, readRepositoryFile } from './pages.ts';

type Tree = Record<string, unknown>;

/**
 * Objects that a page shows as YAML. A part of one says after its fence of which file: `part-of=examples/burst/policy.yaml`. It is merged
 * into the first object there that has these fields; lists are replaced.
 * @param parts false: whole objects only
 */
export function manifestsIn(page: Page, { parts = true } = {}): { object: KubeObject; line: number }[] {
  return page.blocks
    .filter(({ language, code }) => language === 'yaml' || (language === '' && /^(apiVersion|kind):/.test(code)))
    .flatMap(({ code, info, line }) =>
      (loadAll(code) as (Tree | null)[]).flatMap((tree) => {
        const whole = partOf(info);
        if (!tree) return [];
        if (whole === undefined)
          return tree.apiVersion === undefined ? [] : [{ object: tree as unknown as KubeObject, line }];
        return !parts || whole.endsWith('values.yaml')
          ? []
          : [{ object: merge(firstObject(whole), tree) as unknown as KubeObject, line }];
      }),
    );
}

/** Path of the file that a part of YAML belongs to. */
export const partOf = (info: string): string | undefined => /\bpart-of=(\S+)/.exec(info)?.[1];

const firstObject = (path: string): Tree => loadAll(readRepositoryFile(path))[0] as Tree;

const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null && !Array.isArray(value);

function merge(into: Tree, from: Tree): Tree {
  const merged = { ...into };
  for (const [key, value] of Object.entries(from)) {
    const before = merged[key];
    merged[key] = isTree(before) && isTree(value) ? merge(before, value) : value;
  }
  return merged;
}
