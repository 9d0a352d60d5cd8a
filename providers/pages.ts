import { dependencyNotReady } from '../operator/api/errors.ts';

/** Of 100 things or more each: no list that we read has so many. A service may name one page again and again. */
const MOST_PAGES = 1000;

/**
 * Asks for a list page by page until there is none left.
 * @param what is being read, for the error
 * @param ask reads the page, the first one without a mark, and gives the mark of the next; empty or undefined: that was the last
 * @throws CoppiceError when the list does not end: half of it would be taken for all of it
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
