import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { generatedFiles } from '../api/generate.ts';
import { alertsPage, cliPage, indexPage, labelsPage, metricsPage, permissionsPage } from './reference.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** All generated files: path from the repository's root to text. */
async function allFiles(root: string): Promise<Map<string, string>> {
  const pages = {
    README: indexPage(),
    cli: cliPage(),
    permissions: permissionsPage(),
    metrics: await metricsPage(root),
    alerts: await alertsPage(root),
  };
  return new Map([
    ...generatedFiles(),
    ...Object.entries(pages).map(([name, text]) => [`docs/reference/${name}.md`, text] as const),
    ['docs/reference/labels-and-annotations.md', await labelsPage(root)],
  ]);
}

/** Paths of generated files that are missing or outdated. @param files absent: all of them */
export async function staleFiles(root: string = ROOT, files?: ReadonlyMap<string, string>): Promise<string[]> {
  const stale: string[] = [];
  for (const [path, text] of files ?? (await allFiles(root))) {
    const there = await readFile(join(root, path), 'utf8').catch(() => undefined);
    if (there !== text) stale.push(path);
  }
  return stale;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const files = await allFiles(ROOT);
  const stale = await staleFiles(ROOT, files);
  for (const path of stale) {
    await mkdir(dirname(join(ROOT, path)), { recursive: true });
    await writeFile(join(ROOT, path), files.get(path)!);
    console.log(`wrote ${path}`);
  }
  console.log(`${files.size} generated files, ${stale.length} changed`);
}
