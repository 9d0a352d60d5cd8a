/** A file that a garden builds for its clusters: the tar of an image, or a program. */
export interface WantedFile {
  /** For messages: `image kwok`. */
  readonly what: string;
  readonly make: () => Promise<string>;
}

/** Context of a garden's builds. */
export interface Making {
  /** Aborted when the garden stops. */
  readonly signal: AbortSignal;
  readonly say: (stage: string, message: string, more?: { fraction: number }) => void;
}

/** First and longest delay before missing files are retried: an attempt may compile for minutes. */
const AGAIN_MS = 30_000;
const LATEST_MS = 15 * 60_000;

/** Delay in ms before a retry after this many failed rounds. */
export const againAfterMs = (rounds: number): number => Math.min(AGAIN_MS * 2 ** (rounds - 1), LATEST_MS);

/**
 * Tries once to build and hand over each file. Resolves to the failed ones with their errors; to none once the signal
 * is aborted.
 * @param take further processing of a built file
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
