import { dependencyNotReady } from '../operator/api/errors.ts';

/**
 * Page limit: with 100 or more items per page, no list of ours reaches it. A faulty service may return the same page
 * for ever.
 */
const MOST_PAGES = 1000;

/**
 * Reads a list page by page.
 * @param what for the error
 * @param ask reads a page by its mark (none for the first), and returns the next mark; empty or undefined: end
 * @throws CoppiceError when the list does not end: a part must not count as the whole
 */
export async function eachPage<Mark = string>(
  what: string,
  ask: (mark: Mark | undefined) => Promise<Mark | undefined>,
): Promise<void> {
  let mark: Mark | undefined;
  for (let page = 0; page < MOST_PAGES; page++) {
    mark = (await ask(mark)) || undefined;
    if (mark === undefined) return;
  }
  throw dependencyNotReady(`${what}: the list has more than ${MOST_PAGES} pages, and no more of them are asked for`);
}
