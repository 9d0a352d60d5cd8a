import { parseBytes } from '../../../api/quantity.ts';
import { readText, writeIfChanged } from '../../host/files.ts';

const CACHE_BYTES = 10 * 1024 ** 3;
/** The smallest cache that somebody can mean, but for none. */
const LEAST_CACHE_BYTES = 1024 ** 2;
const SCHEME = /^https?:\/\//i;
const HOST = /^(?:https?:\/\/)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?$/i;

/** What a person has allowed the garden's mirror: `coppice up --registry`, `--registry-login`, `--image-cache`. */
export interface RegistrySettings {
  /** Registries that may be on this machine, and may speak plain HTTP: `HOST:PORT`, or `http://HOST:PORT` where no other is spoken. */
  trusted: readonly string[];
  /** Registries that this machine's credentials may be sent to. */
  logins: readonly string[];
  /** What the cache may hold, in bytes. */
  cacheBytes: number;
}

/** The same as words of a command line. Absent: it stays as it was. */
export interface RegistryWords {
  trusted?: string[];
  logins?: string[];
  /** e.g. `20Gi`. */
  cache?: string;
}

/** Settings of a file's text; those that nobody changed where there is none, or where it cannot be understood. */
export function parseSettings(text: string | undefined): RegistrySettings {
  let said: { [name in keyof RegistrySettings]?: unknown } | null = {};
  try {
    said = JSON.parse(text ?? '{}');
  } catch {}
  const words = (value: unknown) => (Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []);
  const { trusted, logins, cacheBytes } = said ?? {};
  return {
    trusted: words(trusted),
    logins: words(logins),
    cacheBytes: typeof cacheBytes === 'number' && cacheBytes >= 0 ? cacheBytes : CACHE_BYTES,
  };
}

/** Writes what a person said into the file; `none` empties a list. Throws on words that are no registry or no size. */
export async function changeSettings(file: string, words: RegistryWords): Promise<void> {
  if (Object.values(words).every((value) => value === undefined)) return;
  const problem = wordsProblem(words);
  if (problem) throw new Error(problem);
  const before = parseSettings(await readText(file));
  const after: RegistrySettings = {
    trusted: words.trusted ? namesOf(words.trusted) : before.trusted,
    logins: words.logins ? namesOf(words.logins) : before.logins,
    cacheBytes: bytesOf(words.cache) ?? before.cacheBytes,
  };
  await writeIfChanged(file, `${JSON.stringify(after, undefined, 2)}\n`);
}

/** Why these words cannot be followed, one line; undefined: they can. Pure. */
export function wordsProblem({ trusted = [], logins = [], cache }: RegistryWords): string | undefined {
  const unknown = [...trusted, ...logins].find((word) => !HOST.test(word));
  if (unknown !== undefined) return `"${unknown}" is not a registry: write HOST or HOST:PORT, for example ghcr.io`;
  // Credentials go by TLS to whatever is called so, or not at all.
  const address = logins.find((word) => word.includes('://'));
  if (address !== undefined)
    return `"${address}" is not the name of a registry: write it without "${SCHEME.exec(address)![0]}"`;
  const bytes = bytesOf(cache) ?? -1;
  // A number without a unit is meant as gigabytes, and read as bytes.
  if (cache !== undefined && bytes !== 0 && bytes < LEAST_CACHE_BYTES)
    return `"${cache}" is not a size for the cache: write for example 20Gi`;
  return undefined;
}

/** `none` empties the list. */
const namesOf = (words: readonly string[]): string[] =>
  [...new Set(words.filter((word) => word !== 'none').map((word) => word.toLowerCase()))].sort();

function bytesOf(text: string | undefined): number | undefined {
  try {
    return text === undefined ? undefined : parseBytes(text);
  } catch {
    return undefined;
  }
}
