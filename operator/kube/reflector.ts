import type { KubeClient } from './client.ts';
import { sleep } from './clock.ts';
import { KubeApiError } from './errors.ts';
import { AnswerTooLargeError } from './http/answer-limits.ts';
import type { Log } from './log.ts';
import type { ListOptions } from './requests/list-pages.ts';
import type { WatchEvent } from './requests/watch.ts';
import { compareResourceVersions, type KubeObject, type Resource } from './resources.ts';

interface ReflectorTarget<T> {
  /** Trims an object as it arrives, so that few are in memory whole. May throw. Absent: no trimming. */
  keep?(object: T): T;
  /** Replaces the whole state with the objects at a resource version. */
  replace(objects: T[], resourceVersion: string): void;
  event(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: T): void;
  /** Called after an error, before the back-off; trimmed objects that were not handed over are forgotten. */
  failed?(error: unknown): void;
  /** The watch works: the server accepted the resumed watch, or sent an event or bookmark. */
  heard?(): void;
}

interface ReflectorOptions extends ListOptions {
  log: Log;
  /** First and longest back-off; default 100 ms and 10 s. */
  baseDelayMs?: number;
  maxDelayMs?: number;
  /** Longest pause within the initial events of a WatchList before the server counts as one without WatchList. */
  initialEventsMs?: number;
}

const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';
/** After a watch that lasted this long, back-off restarts at the shortest delay. */
const HEALTHY_MS = 5000;
/** Back-off after an answer that was too large: each try costs both sides that much. */
const TOO_LARGE_MS = 60_000;
/** Cap on Retry-After: a server that asks for a day would leave the cache stale for a day. */
const LONGEST_WAIT_MS = 60_000;

/**
 * Keeps `target` equal to the server's state until the signal aborts: initial state in one watch (WatchList), or by
 * pages when the server lacks WatchList; then changes, resumed after each break. Relists only when the resource version
 * has expired (410).
 */
export async function reflect<T extends KubeObject>(
  client: KubeClient,
  resource: Resource,
  options: ReflectorOptions,
  target: ReflectorTarget<T>,
  signal: AbortSignal,
): Promise<void> {
  const { namespace, labelSelector, fieldSelector, log } = options;
  const { baseDelayMs = 100, maxDelayMs = 10_000, initialEventsMs = 30_000 } = options;
  const selection = { namespace, labelSelector, fieldSelector };
  const keep = (object: T): T => (target.keep ? target.keep(object) : object);
  let watchList = true;
  /** Resource version to resume from. undefined: relist. */
  let at: string | undefined;
  let failures = 0;

  while (!signal.aborted) {
    const started = performance.now();
    let events = 0;
    let broken: unknown;
    const ended = new AbortController();
    let deadline: NodeJS.Timeout | undefined;
    let initial: InitialEvents<T> | undefined;

    const follow = (event: WatchEvent<T>) => {
      const version = event.object.metadata.resourceVersion;
      events++;
      target.heard?.();
      if (event.type !== 'BOOKMARK') {
        target.event(event.type, event.type === 'DELETED' ? event.object : keep(event.object));
      } else if (at !== undefined && compareResourceVersions(version, at) < 0) {
        throw new KubeApiError('WATCH', 410, { message: `went back from ${at} to ${version}`, reason: 'Expired' });
      }
      at = version;
    };
    const start = (event: WatchEvent<T>) => {
      if (!initial) return follow(event);
      const all = initial.take(event);
      if (all) {
        at = all.resourceVersion;
        target.replace(all.objects, at);
        initial = undefined;
      }
      extend(initial ? initialEventsMs : seconds * 1000);
    };
    /** Local timeout of a watch: a server that does not end a watch in time is dead or ignores timeoutSeconds. */
    const extend = (ms: number) => {
      clearTimeout(deadline);
      deadline = setTimeout(() => ended.abort(new Error('watch is overdue')), ms + 15_000);
    };

    // Random, so that the watches of many informers do not end together.
    const seconds = 300 + Math.floor(Math.random() * 300);
    try {
      if (at === undefined && !watchList) {
        let objects: T[] = [];
        const { resourceVersion } = await client.listPages<T>(
          resource,
          { ...selection, signal },
          {
            begin: () => {
              objects = [];
            },
            each: (object) => objects.push(keep(object)),
          },
        );
        at = resourceVersion;
        target.replace(objects, at);
      }
      if (at === undefined) initial = new InitialEvents(keep);
      extend(initial ? initialEventsMs : seconds * 1000);
      await client.watch<T>(
        resource,
        {
          ...selection,
          ...(initial ? { sendInitialEvents: true } : { resourceVersion: at ?? '' }),
          timeoutSeconds: seconds,
          signal: AbortSignal.any([signal, ended.signal]),
          ...(!initial && { onOpen: () => target.heard?.() }),
        },
        start,
      );
    } catch (error) {
      if (signal.aborted) break;
      broken = error;
    } finally {
      clearTimeout(deadline);
    }

    const lasted = performance.now() - started;
    if (initial && (ended.signal.aborted || (broken instanceof KubeApiError && isUnknownRequest(broken)))) {
      log.debug({ resource: resource.plural, err: broken }, 'the server has no WatchList; listing by pages');
      watchList = false;
      continue;
    }
    if (broken instanceof KubeApiError && broken.isGone) {
      log.debug({ resource: resource.plural, resourceVersion: at }, 'the resource version is too old; starting over');
      at = undefined;
    }
    if (events > 0 || lasted > HEALTHY_MS) failures = 0;
    // The regular end of a watch; but a server that ends each watch at once must not be asked in a tight loop.
    if (broken === undefined && lasted > 1000) continue;
    if (broken !== undefined) {
      const fields = { resource: resource.plural, err: broken, failures };
      if (failures === 3) log.warn(fields, 'watch keeps failing; what is cached may be old');
      else log.debug(fields, 'watch failed');
      target.failed?.(broken);
    }
    const ceiling = Math.min(maxDelayMs, baseDelayMs * 2 ** failures++);
    await sleep(Math.max(leastWaitMs(broken), ceiling * (0.5 + Math.random() / 2)), signal);
  }
}

/** Collects the initial events of a WatchList. */
class InitialEvents<T extends KubeObject> {
  readonly #keep: (object: T) => T;
  readonly #objects = new Map<string, T>();

  /** @param keep trims an object */
  constructor(keep: (object: T) => T) {
    this.#keep = keep;
  }

  /** @returns all objects with their resource version after the last initial event; undefined before */
  take({ type, object }: WatchEvent<T>): { objects: T[]; resourceVersion: string } | undefined {
    const { name, namespace = '', annotations, resourceVersion = '0' } = object.metadata;
    if (type === 'DELETED') this.#objects.delete(`${namespace}/${name}`);
    else if (type !== 'BOOKMARK') this.#objects.set(`${namespace}/${name}`, this.#keep(object));
    else if (annotations?.[INITIAL_EVENTS_END] === 'true')
      return { objects: [...this.#objects.values()], resourceVersion };
    return undefined;
  }
}

/** Shortest back-off after this error: Retry-After of the server, or longer when each try is expensive. */
function leastWaitMs(broken: unknown): number {
  if (broken instanceof AnswerTooLargeError) return TOO_LARGE_MS;
  const asked = broken instanceof KubeApiError ? (broken.retryAfterSeconds ?? 0) * 1000 : 0;
  return Math.min(asked, LONGEST_WAIT_MS);
}

/** Whether the error means that the server lacks WatchList, or has it disabled. */
function isUnknownRequest(error: KubeApiError): boolean {
  return error.status === 400 || error.status === 405 || error.status === 415 || error.status === 422;
}
