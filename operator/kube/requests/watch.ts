import { KubeApiError, type Status } from '../errors.ts';
import { type KubeObject, pathOf, type Resource } from '../resources.ts';
import type { ApiRequests } from './api-requests.ts';
import type { ListOptions } from './list-pages.ts';

export interface WatchEvent<T extends KubeObject = KubeObject> {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  object: T;
}

export interface WatchOptions extends ListOptions {
  /** Resource version after which events are sent. */
  resourceVersion?: string;
  /** Send all objects first, then a bookmark with annotation k8s.io/initial-events-end (WatchList). */
  sendInitialEvents?: boolean;
  /** The server ends the watch after this time. */
  timeoutSeconds?: number;
  /** The server accepted the watch; events may follow. */
  onOpen?: () => void;
  signal?: AbortSignal | undefined;
}

/** See KubeClient.watch. */
export async function watch<T extends KubeObject>(
  requests: Pick<ApiRequests, 'stream'>,
  resource: Resource,
  options: WatchOptions,
  onEvent: (event: WatchEvent<T>) => void,
): Promise<void> {
  const {
    namespace,
    labelSelector,
    fieldSelector,
    resourceVersion,
    sendInitialEvents,
    timeoutSeconds,
    signal,
    onOpen,
  } = options;
  const path = pathOf(resource, namespace);
  const query = {
    watch: true,
    allowWatchBookmarks: true,
    labelSelector,
    fieldSelector,
    resourceVersion,
    timeoutSeconds,
    ...(sendInitialEvents ? { sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' } : {}),
  };
  await requests.stream(path, { query, signal, onOpen }, (line) => {
    const event = JSON.parse(line) as WatchEvent<T> | { type: 'ERROR'; object: Status };
    if (event.type === 'ERROR') throw new KubeApiError(`WATCH ${path}`, event.object.code ?? 500, event.object);
    onEvent(event);
  });
}
