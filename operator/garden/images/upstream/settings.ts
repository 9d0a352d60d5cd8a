import { parseBytes } from '../../../api/quantity.ts';
import { readText, writeIfChanged } from '../../host/files.ts';

const CACHE_BYTES = 10 * 1024 ** 3;
/** Smallest plausible cache size, apart from zero. */
const LEAST_CACHE_BYTES = 1024 ** 2;
const SCHEME = /^https?:\/\//i;
const HOST = /^(?:https?:\/\/)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?$/i;

/** A person's settings of the garden's mirror: `coppice up --registry`, `--registry-login`, `--image-cache`. */
export interface RegistrySettings {
  /**
   * Registries that may be on this machine and may use plain HTTP: `HOST:PORT`, or `http://HOST:PORT` where only HTTP
   * is used.
   */
  trusted: readonly string[];
  /** Registries that may receive this machine's credentials. */
  logins: readonly string[];
  /** Cache size limit in bytes. */
  cacheBytes: number;
}

/** The settings as command-line options. Absent: unchanged. */
export interface RegistryWords {
  trusted?: string[];
  logins?: string[];
  /** e.g. `20Gi`. */
  cache?: string;
}

/** Settings in a file; defaults where it is missing or cannot be parsed. */
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

/** Writes changed settings into the file; `none` empties a list. Throws for an invalid registry or size. */
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

/** Why the options are invalid, one line; undefined: valid. Pure. */
export function wordsProblem({ trusted = [], logins = [], cache }: RegistryWords): string | undefined {
  const unknown = [...trusted, ...logins].find((word) => !HOST.test(word));
  if (unknown !== undefined) return `"${unknown}" is not a registry: write HOST or HOST:PORT, for example ghcr.io`;
  // Credentials are sent by TLS to a host name only.
  const address = logins.find((word) => word.includes('://'));
  if (address !== undefined)
    return `"${address}" is not the name of a registry: write it without "${SCHEME.exec(address)![0]}"`;
  const bytes = bytesOf(cache) ?? -1;
  // A number without a unit is usually meant as gigabytes, but parsed as bytes.
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
