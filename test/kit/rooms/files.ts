import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of the repository. */
export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** What each room may import of ours, besides itself. Dependencies point one way: docs/architecture.md. */
export const MAY_IMPORT: Record<string, string[]> = {
  'operator/api': [],
  'operator/flow': [],
  'operator/pki': [],
  'operator/kube': ['operator/api'],
  'operator/etcd': ['operator/kube'],
  'operator/shoot': ['operator/api', 'operator/etcd', 'operator/pki', 'operator/kube'],
  'operator/placement': ['operator/api'],
  'operator/cost': ['operator/api'],
  'operator/capacity': ['operator/api'],
  // Pure: of operator/kube types of objects, and what one pod tells of itself.
  'operator/burst': ['operator/api', 'operator/kube', 'operator/capacity', 'operator/cost'],
  providers: ['operator/api', 'operator/kube', 'operator/pki'],
  'operator/clusters': ['operator/api', 'operator/kube', 'operator/pki', 'providers'],
  'operator/accounts': ['operator/api', 'operator/kube', 'operator/pki', 'operator/cost', 'providers'],
  // Of operator/burst only what no pod can be judged by.
  'operator/hubs': ['operator/api', 'operator/burst', 'operator/kube', 'operator/pki'],
  'operator/mesh': ['operator/api', 'operator/hubs', 'operator/kube'],
  'operator/controllers': [
    'operator/api',
    'operator/burst',
    'operator/hubs',
    'operator/accounts',
    'operator/clusters',
    'operator/etcd',
    'operator/flow',
    'operator/mesh',
    'operator/kube',
    'operator/pki',
    'operator/shoot',
    'operator/placement',
    'operator/cost',
    'operator/capacity',
    'providers',
  ],
  // Plays the operator's deciders against the simulated cloud, without a network.
  'operator/rehearsal': [
    'operator/api',
    'operator/burst',
    'operator/kube',
    'operator/capacity',
    'operator/cost',
    'operator/controllers',
    'providers',
  ],
  // What Jobs of the chart run.
  'operator/chart': ['operator/api', 'operator/kube'],
  // What `npm run release` writes.
  'operator/release': ['operator/api', 'operator/garden', 'operator/kube'],
  // The garden builds the machine image of the local provider and installs what the API declares.
  'operator/garden': ['operator/api', 'operator/kube', 'operator/pki', 'providers'],
  'operator/cli': [
    'operator/api',
    'operator/cost',
    'operator/kube',
    'operator/garden',
    'operator/pki',
    'operator/rehearsal',
    // The sweep looks where the operator would.
    'operator/accounts',
    'operator/controllers',
    // The demo looks at what a hub is told.
    'operator/hubs',
    'providers',
  ],
};

/** The two files that wire everything together; they are in no room. */
export const WIRING = ['operator/main.ts', 'operator/operator.ts'];

/** Paths of the TypeScript files below a folder, from the root of the repository. */
export const filesIn = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(folder, name));

/** The text of a file, by its path from the root of the repository. */
export const textOf = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

/** The room that a file is in; undefined: it is in none. */
export const roomOf = (file: string): string | undefined =>
  Object.keys(MAY_IMPORT).find((room) => file === room || file.startsWith(`${room}/`));

/** The files of ours that a file imports, also types and what is loaded lazily. */
export const importsOf = (file: string): string[] =>
  [...textOf(file).matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map((match) => resolved(file, match[1]!));

/** The path of a file that another file imports as `specifier`. */
export const resolved = (file: string, specifier: string): string =>
  relative(ROOT, resolve(ROOT, dirname(file), specifier));
