import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { KubeObject } from '../api/meta.ts';
import { yamlDocuments } from '../kube/yaml.ts';
import { CliError, EXIT } from './errors.ts';

export interface Manifest {
  object: KubeObject;
  /** File or `-`, for errors. */
  source: string;
}

/** Reads the objects in files, folders (*.yaml, *.yml, *.json) and `-`. Throws CliError that names the file. */
export async function readManifests(files: readonly string[]): Promise<Manifest[]> {
  const found: Manifest[] = [];
  for (const file of files) {
    for (const [source, text] of await readTexts(file)) found.push(...parseManifests(text, source));
  }
  if (found.length === 0) throw new CliError(`${files.join(', ')} contains no Kubernetes object`);
  return found;
}

/** Objects of one YAML or JSON text. The items of a List become objects of their own. */
export function parseManifests(text: string, source: string): Manifest[] {
  let documents: unknown[];
  try {
    documents = yamlDocuments(text);
  } catch (error) {
    throw new CliError(`${source} is not valid YAML: ${(error as Error).message}`);
  }
  return documents.flatMap((document, index) => {
    if (document === null || document === undefined) return [];
    const object = document as KubeObject;
    const where = documents.length === 1 ? source : `${source}, document ${index + 1}`;
    if (typeof object !== 'object' || !object.apiVersion || !object.kind) {
      throw new CliError(`${where} is not a Kubernetes object: it has no apiVersion and kind`);
    }
    const items =
      object.kind.endsWith('List') && Array.isArray(object.items) ? (object.items as KubeObject[]) : [object];
    return items.map((item) => {
      if (!item.metadata?.name) throw new CliError(`${where}: the ${item.kind} has no metadata.name`);
      return { object: item, source: where };
    });
  });
}

async function readTexts(file: string): Promise<[string, string][]> {
  if (file === '-') {
    const chunks: Buffer[] = [];
    for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
    return [['standard input', Buffer.concat(chunks).toString('utf8')]];
  }
  try {
    if (!(await stat(file)).isDirectory()) return [[file, await readFile(file, 'utf8')]];
    const names = (await readdir(file)).filter((name) => /\.(ya?ml|json)$/.test(name)).sort();
    return await Promise.all(
      names.map(
        async (name): Promise<[string, string]> => [join(file, name), await readFile(join(file, name), 'utf8')],
      ),
    );
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    throw new CliError(missing ? `there is no file ${file}` : `cannot read ${file}: ${(error as Error).message}`, {
      exitCode: missing ? EXIT.notFound : EXIT.failed,
    });
  }
}
