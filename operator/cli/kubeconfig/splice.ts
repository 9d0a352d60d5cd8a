import { isDeepStrictEqual } from 'node:util';
import { dump } from 'js-yaml';
import type { KubeconfigDocument, NamedEntry } from '../../kube/kubeconfig-files.ts';
import { yamlDocument } from '../../kube/yaml.ts';
import { writeKubeconfig } from './config.ts';

/**
 * The changed document as text. Keeps comments, order and layout of the original if its layout is common: replaces only the
 * entries that changed. Otherwise writes the document anew without comments. The result always parses as exactly `changed`.
 */
export function spliceKubeconfig(original: string, before: KubeconfigDocument, changed: KubeconfigDocument): string {
  try {
    const spliced = splice(original, before, changed);
    if (spliced !== undefined && isDeepStrictEqual(yamlDocument(spliced), changed)) return spliced;
  } catch {
    // Uncommon layout: written anew below.
  }
  return writeKubeconfig(changed);
}

function splice(original: string, before: KubeconfigDocument, changed: KubeconfigDocument): string | undefined {
  let lines = original.replace(/\n*$/, '\n').split('\n').slice(0, -1);
  for (const list of ['clusters', 'users', 'contexts'] as const) {
    const next = editList(lines, list, before[list] ?? [], changed[list] ?? []);
    if (next === undefined) return undefined;
    lines = next;
  }
  const current = changed['current-context'];
  if (current !== before['current-context']) {
    const at = lines.findIndex((line) => line.startsWith('current-context:'));
    const line = dump({ 'current-context': current }).trimEnd();
    if (at === -1) lines.push(line);
    else lines[at] = line;
  }
  return `${lines.join('\n')}\n`;
}

function editList(lines: string[], list: string, before: NamedEntry[], after: NamedEntry[]): string[] | undefined {
  if (isDeepStrictEqual(before, after)) return lines;
  const start = lines.findIndex((line) => new RegExp(`^${list}:\\s*(#.*|null|\\[\\])?$`).test(line));
  if (start === -1) return [...lines, ...dumpList(list, after, 0)];
  if (before.length === 0) return [...lines.slice(0, start), ...dumpList(list, after, 0), ...lines.slice(start + 1)];

  let end = start + 1;
  while (end < lines.length && /^(\s|-|#|$)/.test(lines[end]!)) end++;
  const items = itemRanges(lines, start + 1, end);
  if (items === undefined || items.length !== before.length) return undefined;
  const indent = /^ */.exec(lines[items[0]!.from]!)![0].length;

  const head = lines.slice(start, items[0]!.from);
  const kept: string[] = [];
  for (const [index, entry] of before.entries()) {
    const wanted = after.find((candidate) => candidate.name === entry.name);
    const { from, to } = items[index]!;
    if (wanted === undefined) continue;
    if (isDeepStrictEqual(wanted, entry)) kept.push(...lines.slice(from, to));
    else kept.push(...dumpItem(wanted, indent));
  }
  const added = after.filter((entry) => !before.some((old) => old.name === entry.name));
  for (const entry of added) kept.push(...dumpItem(entry, indent));
  const body = kept.length === 0 ? [`${list}: []`] : [...head, ...kept];
  return [...lines.slice(0, start), ...body, ...lines.slice(end)];
}

function itemRanges(lines: string[], from: number, to: number): { from: number; to: number }[] | undefined {
  const first = lines.slice(from, to).findIndex((line) => /^ *- /.test(line));
  if (first === -1) return undefined;
  const indent = /^ */.exec(lines[from + first]!)![0];
  const starts: number[] = [];
  for (let line = from; line < to; line++) if (lines[line]!.startsWith(`${indent}- `)) starts.push(line);
  return starts.map((start, index) => ({ from: start, to: starts[index + 1] ?? to }));
}

function dumpList(list: string, entries: NamedEntry[], indent: number): string[] {
  return entries.length === 0 ? [`${list}: []`] : [`${list}:`, ...entries.flatMap((entry) => dumpItem(entry, indent))];
}

function dumpItem(entry: NamedEntry, indent: number): string[] {
  const text = dump([entry], { lineWidth: -1 }).trimEnd();
  return text.split('\n').map((line) => ' '.repeat(indent) + line);
}
