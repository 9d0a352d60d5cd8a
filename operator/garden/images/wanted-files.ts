/** A file that a garden makes for its clusters: the tar of an image, or a program. */
export interface WantedFile {
  /** For people: `image kwok`. */
  readonly what: string;
  readonly make: () => Promise<string>;
}

/** Whom a garden that makes files tells how far it is. */
export interface Making {
  /** Aborted when the garden stops. */
  readonly signal: AbortSignal;
  readonly say: (stage: string, message: string, more?: { fraction: number }) => void;
}

/** What is missing, for the first time and at most: to try may be to build for minutes. */
const AGAIN_MS = 30_000;
const LATEST_MS = 15 * 60_000;

/** How long to wait, in ms, before files are tried again that are missing after so many rounds. */
export const againAfterMs = (rounds: number): number => Math.min(AGAIN_MS * 2 ** (rounds - 1), LATEST_MS);

/**
 * Tries once to make each, and to hand it over. Resolves to those that are still missing, and why; to none once the signal is aborted.
 * @param take what else there is to do for one that is made
 */
export async function makeEach<File extends WantedFile>(
  wanted: readonly File[],
  { signal, say }: Making,
  take: (made: string, wanted: File) => Promise<void> = async () => {},
): Promise<{ wanted: File; error: Error }[]> {
  const missing: { wanted: File; error: Error }[] = [];
  for (const one of wanted) {
    if (signal.aborted) return [];
    try {
      await take(await one.make(), one);
    } catch (error) {
      if (signal.aborted) return [];
      missing.push({ wanted: one, error: error as Error });
      say('images', `${one.what} is missing, and the garden tries again: ${(error as Error).message}`);
    }
  }
  return missing;
}
