import { KubeApiError } from '../errors.ts';
import { AnswerTooLargeError, inWords } from '../http/answer-limits.ts';
import { sizeOf } from '../http/byte-budget.ts';
import { type KubeObject, pathOf, type Resource } from '../resources.ts';
import type { ApiRequests, Query } from './api-requests.ts';

export interface ListOptions {
  /** Absent: all namespaces. */
  namespace?: string | undefined;
  labelSelector?: string | undefined;
  fieldSelector?: string | undefined;
}

/** Options of a paged list. */
export interface PagesOptions extends ListOptions {
  signal?: AbortSignal | undefined;
  /** Objects per page; default 500. */
  pageSize?: number;
}

/** A list from the server; apiVersion and kind are copied into every item. */
export interface KubeList<T> {
  metadata: { resourceVersion: string; continue?: string; remainingItemCount?: number };
  items: T[];
}

/** The part of ApiRequests that lists need. */
export type Lister = Pick<ApiRequests, 'limits' | 'request' | 'tooLarge'>;

const PAGE = 500;
const MOST_BEGINNINGS = 3;
const MOST_EMPTY_PAGES = 100;

/** See KubeClient.list. */
export async function listAll<T extends KubeObject>(
  lister: Lister,
  resource: Resource,
  options: PagesOptions & { transform?: (object: T) => T },
): Promise<KubeList<T>> {
  const { transform = (object: T) => object } = options;
  const { keptBytes } = lister.limits;
  let items: T[] = [];
  let kept = 0;
  const metadata = await listPages<T>(lister, resource, options, {
    begin: () => {
      items = [];
      kept = 0;
    },
    each: (object) => {
      const item = transform(object);
      if (keptBytes < Number.POSITIVE_INFINITY) kept += sizeOf(item);
      if (kept > keptBytes) throw lister.tooLarge(`GET ${pathOf(resource, options.namespace)}`, inWords(keptBytes));
      items.push(item);
    },
  });
  return { metadata, items };
}

/** See KubeClient.listPages. */
export async function listPages<T extends KubeObject>(
  lister: Lister,
  resource: Resource,
  options: PagesOptions,
  { begin, each }: { begin: () => void; each: (object: T) => void },
): Promise<KubeList<T>['metadata']> {
  const { namespace, labelSelector, fieldSelector, signal } = options;
  const path = pathOf(resource, namespace);
  let limit = options.pageSize ?? PAGE;
  let token: string | undefined;
  let beginnings = 1;
  let empty = 0;
  begin();
  for (;;) {
    let page: KubeList<T> & { apiVersion: string; kind: string };
    try {
      const query: Query = { labelSelector, fieldSelector, limit, continue: token };
      page = await lister.request('GET', path, { query, signal, maxBytes: lister.limits.pageBytes });
    } catch (error) {
      if (error instanceof AnswerTooLargeError && limit > 1) {
        limit = Math.ceil(limit / 8);
        continue;
      }
      // The resource version of the first page was compacted away.
      const isForgotten = token !== undefined && error instanceof KubeApiError && error.isGone;
      if (!isForgotten || beginnings++ === MOST_BEGINNINGS) throw error;
      token = undefined;
      begin();
      continue;
    }
    const items = page.items ?? [];
    for (const item of items) {
      item.apiVersion ??= page.apiVersion;
      item.kind ??= page.kind.replace(/List$/, '');
      each(item);
    }
    token = page.metadata.continue || undefined;
    if (!token) return page.metadata;
    empty = items.length > 0 ? 0 : empty + 1;
    if (empty > MOST_EMPTY_PAGES) throw lister.tooLarge(`GET ${path}`, `${MOST_EMPTY_PAGES} empty pages`);
  }
}
